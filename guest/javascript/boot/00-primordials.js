// Every builtin that the boot code uses, taken before any script can change one. The files of this folder are joined in
// the order of their names into one function of `natives`.
const { tools: toolsRoot } = natives;
