"""The modules of the standard library that are in the image, imported once when it is built.

The interpreter has no files, so what is not imported then cannot be imported later. Everything is here that needs no
operating system and is of use to a script; `HIDDEN` says of others why they are not.
"""

from __future__ import annotations

from typing import Final

_NAMES: Final = """
    __future__ _ast _compat_pickle _markupbase _pydecimal _pylong _strptime _thread _threading_local abc
    annotationlib argparse array ast asyncio asyncio.taskgroups asyncio.timeouts atexit base64 bdb binascii bisect
    builtins calendar cmath cmd code codecs codeop collections collections.abc colorsys compileall
    concurrent.futures concurrent.futures.thread configparser contextlib contextvars copy copyreg csv dataclasses
    datetime decimal difflib dis doctest email email.base64mime email.charset email.contentmanager email.encoders
    email.errors email.feedparser email.generator email.header email.headerregistry email.iterators email.message
    email.mime.application email.mime.audio email.mime.base email.mime.image email.mime.message email.mime.multipart
    email.mime.nonmultipart email.mime.text email.parser email.policy email.quoprimime email.utils encodings
    encodings.aliases encodings.ascii encodings.big5 encodings.cp1250 encodings.cp1251 encodings.cp1252
    encodings.cp437 encodings.cp850 encodings.euc_jp encodings.gb18030 encodings.gbk encodings.hex_codec
    encodings.idna encodings.iso8859_1 encodings.iso8859_15 encodings.iso8859_2 encodings.koi8_r encodings.latin_1
    encodings.punycode encodings.raw_unicode_escape encodings.rot_13 encodings.shift_jis encodings.unicode_escape
    encodings.utf_16 encodings.utf_16_be encodings.utf_16_le encodings.utf_32 encodings.utf_32_be
    encodings.utf_32_le encodings.utf_7 encodings.utf_8 encodings.utf_8_sig encodings.zlib_codec
    encodings.base64_codec encodings.quopri_codec enum errno fileinput fnmatch fractions functools gc genericpath
    getopt gettext glob graphlib gzip hashlib heapq hmac html html.entities html.parser http http.cookies importlib
    importlib.abc importlib.machinery importlib.metadata importlib.resources importlib.util inspect io ipaddress
    itertools json json.decoder json.encoder json.scanner json.tool keyword linecache locale logging logging.config
    logging.handlers marshal math mimetypes numbers opcode operator optparse os os.path pathlib pdb pickle
    pickletools pkgutil platform plistlib posixpath pprint pydoc profile pstats queue quopri random re reprlib
    rlcompleter sched secrets shelve shlex shutil signal site sqlite3 stat statistics string string.templatelib
    stringprep struct symtable sys sysconfig tabnanny tarfile tempfile textwrap threading time timeit token tokenize
    tomllib trace traceback tracemalloc types typing unicodedata unittest unittest.async_case unittest.mock
    urllib.parse uuid warnings wave weakref xml.dom xml.dom.minidom xml.dom.pulldom xml.etree.ElementInclude
    xml.etree.ElementTree xml.parsers.expat xml.sax xml.sax.expatreader xml.sax.handler xml.sax.saxutils
    xml.sax.xmlreader xmlrpc.client zipapp zipfile zlib zoneinfo
"""

PRELOADED: Final[tuple[str, ...]] = tuple(_NAMES.split())

HIDDEN: Final[dict[str, str]] = {
    name: reason
    for reason, names in {
        "there is no network here; the outside is reached through tools": (
            "socket _socket ssl _ssl http.client http.server urllib.request urllib.error urllib.robotparser ftplib"
            " smtplib poplib imaplib nntplib telnetlib socketserver xmlrpc.server select _select selectors"
            " asyncio.selector_events asyncio.sslproto"
        ),
        "there are no other processes here": (
            "subprocess _posixsubprocess multiprocessing _multiprocessing pty os.fork asyncio.subprocess"
            " asyncio.base_subprocess asyncio.unix_events concurrent.futures.process concurrent.interpreters"
            " _interpreters _interpqueues _interpchannels signal _signal faulthandler"
        ),
        "there is no native code to load here": "ctypes _ctypes cffi mmap ensurepip venv pip site",
        "there is no terminal here": (
            "curses readline tty termios pdb bdb cmd rlcompleter getpass tkinter turtle webbrowser"
        ),
        "there is no operating system here": "fcntl resource pwd grp syslog crypt",
        "this module is not in the image": "bz2 lzma dbm _dbm compression.zstd idlelib lib2to3 test antigravity this",
    }.items()
    for name in names.split()
}
"""Modules that a script cannot import, with the reason that the exception gives."""
