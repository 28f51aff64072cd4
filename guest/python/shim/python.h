/* The functions of CPython's C API that the shim calls, declared by hand: the build has no headers of the interpreter that
   it merges with, and needs none. All are functions; no macro and no struct of CPython is relied on, except the three of
   the stable ABI below. */
#ifndef EXECUTOR_PYTHON_H
#define EXECUTOR_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct PyObject PyObject;
typedef intptr_t Py_ssize_t;
typedef PyObject *(*PyCFunction)(PyObject *self, PyObject *argument);
typedef struct {
    const char *name;
    PyCFunction function;
    int flags;
    const char *doc;
} PyMethodDef;

enum { METH_VARARGS = 1, METH_NOARGS = 4, METH_O = 8 };
enum { PY_FILE_INPUT = 257 };
enum { PY_NONE = 0, PY_FALSE = 1, PY_TRUE = 2 }; /* Py_GetConstantBorrowed */

/* Bits of PyType_GetFlags that say what a type derives from. */
#define TYPE_LONG (1ul << 24)
#define TYPE_LIST (1ul << 25)
#define TYPE_TUPLE (1ul << 26)
#define TYPE_BYTES (1ul << 27)
#define TYPE_STR (1ul << 28)
#define TYPE_DICT (1ul << 29)

int PyGILState_Ensure(void);
void Py_IncRef(PyObject *);
void Py_DecRef(PyObject *);
PyObject *Py_GetConstantBorrowed(unsigned);
PyObject *Py_TYPE(PyObject *);
unsigned long PyType_GetFlags(PyObject *type);
int PyType_IsSubtype(PyObject *type, PyObject *base);

PyObject *PyLong_FromLongLong(long long);
PyObject *PyLong_FromUnsignedLongLong(unsigned long long);
long long PyLong_AsLongLongAndOverflow(PyObject *, int *overflow);
unsigned long long PyLong_AsUnsignedLongLong(PyObject *);
PyObject *PyFloat_FromDouble(double);
double PyFloat_AsDouble(PyObject *);
PyObject *PyBool_FromLong(long);
PyObject *PyUnicode_DecodeUTF8(const char *, Py_ssize_t, const char *errors);
PyObject *PyUnicode_FromString(const char *);
PyObject *PyUnicode_Decode(const char *, Py_ssize_t, const char *encoding, const char *errors);
PyObject *PyUnicode_AsEncodedString(PyObject *, const char *encoding, const char *errors);
const char *PyUnicode_AsUTF8AndSize(PyObject *, Py_ssize_t *);
PyObject *PyBytes_FromStringAndSize(const char *, Py_ssize_t);
int PyBytes_AsStringAndSize(PyObject *, char **, Py_ssize_t *);
PyObject *PyList_New(Py_ssize_t);
Py_ssize_t PyList_Size(PyObject *);
PyObject *PyList_GetItem(PyObject *, Py_ssize_t);
int PyList_SetItem(PyObject *, Py_ssize_t, PyObject *);
PyObject *PyTuple_New(Py_ssize_t);
Py_ssize_t PyTuple_Size(PyObject *);
PyObject *PyTuple_GetItem(PyObject *, Py_ssize_t);
int PyTuple_SetItem(PyObject *, Py_ssize_t, PyObject *);
PyObject *PyDict_New(void);
Py_ssize_t PyDict_Size(PyObject *);
int PyDict_Next(PyObject *, Py_ssize_t *, PyObject **, PyObject **);
int PyDict_SetItem(PyObject *, PyObject *, PyObject *);
int PyDict_SetItemString(PyObject *, const char *, PyObject *);

PyObject *PyObject_CallOneArg(PyObject *, PyObject *);
PyObject *PyObject_CallFunctionObjArgs(PyObject *, ...);
PyObject *PyObject_GetAttrString(PyObject *, const char *);
PyObject *PyObject_Str(PyObject *);
int PyObject_IsTrue(PyObject *);
PyObject *PyObject_GetIter(PyObject *);
PyObject *PyIter_Next(PyObject *);
Py_ssize_t PyObject_Size(PyObject *);

PyObject *PyErr_GetRaisedException(void);
void PyErr_SetRaisedException(PyObject *);
PyObject *PyErr_Occurred(void);
void PyErr_Clear(void);
PyObject *PyErr_NoMemory(void);
void PyErr_SetObject(PyObject *type, PyObject *value);

PyObject *PyModule_New(const char *);
int PyModule_AddObjectRef(PyObject *, const char *, PyObject *);
PyObject *PyCFunction_NewEx(PyMethodDef *, PyObject *self, PyObject *module);
PyObject *PyImport_ImportModule(const char *);
PyObject *PyEval_GetBuiltins(void);
PyObject *Py_CompileString(const char *, const char *filename, int start);
PyObject *PyEval_EvalCode(PyObject *, PyObject *globals, PyObject *locals);

/* libc, which CPython brings */
void *malloc(size_t);
void *calloc(size_t, size_t);
void *realloc(void *, size_t);
void free(void *);
void *memcpy(void *, const void *, size_t);
int memcmp(const void *, const void *, size_t);
size_t strlen(const char *);

#endif
