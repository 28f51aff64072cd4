// os: a machine with nothing to tell.
const signals = { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGABRT: 6, SIGKILL: 9, SIGPIPE: 13, SIGALRM: 14, SIGTERM: 15 };
module.exports = {
  EOL: "\n", devNull: "/dev/null", arch: () => "x64", platform: () => "linux", type: () => "Linux", release: () => "6.0.0", version: () => "#1",
  machine: () => "x86_64", hostname: () => "isolate", homedir: () => "/home", tmpdir: () => "/tmp", endianness: () => "LE", uptime: () => performance.now() / 1000,
  loadavg: () => [0, 0, 0], totalmem: () => 2 ** 29, freemem: () => 2 ** 28, cpus: () => [{ model: "wasm", speed: 0, times: { user: 0, nice: 0, sys: 0, idle: 0, irq: 0 } }],
  availableParallelism: () => 1, networkInterfaces: () => ({}), getPriority: () => 0, setPriority() {},
  userInfo: () => ({ uid: 1000, gid: 1000, username: "user", homedir: "/home", shell: null }),
  constants: { signals, errno: {}, priority: {}, dlopen: {}, UV_UDP_REUSEADDR: 4 },
};
