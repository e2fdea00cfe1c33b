"""How numba builds kernels that only kernels call: as code for their callers, with no machine code of
their own.

numba optimises every function with all that it calls, and turns the whole into machine code, at each level of
a call tree. Of a kernel without a wrapper for Python only its callers' copies are ever run: it is left as it
was translated, and each kernel that Python calls is optimised once, with everything in it. Those that must be
part of their callers are optimised before, as LLVM puts them there as they are: else the book is a tenth
slower.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary, RuntimeLinker
from numba.core.compiler import Compiler
from numba.core.environment import lookup_environment


class KernelCompiler(Compiler):  # type: ignore[misc]  # numba has no types
    """numba's compiler, with a library of ours for the code: numba makes one only where there is none."""

    def define_pipelines(self) -> Any:
        state = self.state
        if state.library is None:
            called = state.flags.no_cpython_wrapper and state.flags.no_cfunc_wrapper
            library = (_Callee if called else _Entry)(state.targetctx.codegen(), state.func_id.func_qualname)
            library.inlined = bool(state.flags.forceinline)
            library.enable_object_caching()
            state.library = library
        return super().define_pipelines()


class _Entry(JITCodeLibrary):  # type: ignore[misc]
    """A kernel that Python calls, with all that it calls."""

    inlined = False

    def _finalize_specific(self) -> None:
        super()._finalize_specific()
        for variable in self._final_module.global_variables:  # those of callees: nobody else sets them
            if variable.name.startswith("_ZN08NumbaEnv"):
                environment = lookup_environment(variable.name)
                if environment is not None:
                    self._codegen.set_env(variable.name, environment)


class _Callee(_Entry):
    """A kernel that other kernels call. One that calls itself is built as numba builds all."""

    _native = False

    @property
    def codegen(self) -> Any:
        return self._codegen if self._native else _NothingToSet(self._codegen)

    def finalize(self) -> None:
        variables = self._final_module.global_variables
        self._native = any(one.name.startswith(RuntimeLinker.PREFIX) for one in variables)
        super().finalize()

    def _optimize_final_module(self) -> None:
        if self._native or self.inlined:
            super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        if self._native:
            super()._finalize_final_module()
        else:
            self._finalize_dynamic_globals()
            self._verify_declare_only_symbols()
            self._finalized = True

    def serialize_using_object_code(self) -> Any:
        return super().serialize_using_object_code() if self._native else self.serialize_using_bitcode()


class _NothingToSet:
    """The code generator, for a library whose variables have no address."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, name: str, environment: Any) -> None:
        """No code, no variable: the callers' libraries set theirs."""
