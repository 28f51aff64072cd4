"""The Python side of the guest. These files run inside the isolate, in CPython 3.14; the host never imports them."""
