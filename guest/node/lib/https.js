const http = require("http");
module.exports = { ...house.http("https:"), Server: http.Server, createServer: http.createServer };
