"""The CPU that code is made for, and LLVM's code generator for it."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import llvmlite
import llvmlite.binding as llvm

_lock: Final = threading.Lock()

#: Bytes of a vector where the CPU has wide ones (AVX2), and anywhere else.
WIDE: Final = 32
NARROW: Final = 16


@dataclass(frozen=True, slots=True)
class Host:
    """A CPU. `width`: bytes of the vectors to use. `shuffles`: has `pshufb` (SSSE3) of that width."""

    triple: str
    cpu: str
    features: str
    width: int
    shuffles: bool

    def key(self) -> str:
        """Everything about CPU, LLVM and this package's sources that the code depends on."""
        llvm_version = ".".join(map(str, llvm.llvm_version_info))
        parts = (self.triple, self.cpu, self.features, str(self.width), llvmlite.__version__, llvm_version)
        return "|".join((*parts, _sources()))


@cache
def host() -> Host:
    """The CPU of this process."""
    triple, features = llvm.get_process_triple(), llvm.get_host_cpu_features()
    return make_host(triple, llvm.get_host_cpu_name(), features.flatten())


def make_host(triple: str, cpu: str, features: str) -> Host:
    """A host with the widest vectors that `features` (of LLVM, comma-separated) allow."""
    has = features.split(",")
    x86 = triple.startswith(("x86_64", "i686"))
    width = WIDE if x86 and "+avx2" in has else NARROW
    return Host(triple, cpu, features, width, x86 and ("+avx2" in has or "+ssse3" in has))


def narrow(wide: Host) -> Host:
    """The same CPU as if it had 16-byte vectors only (and no `pshufb`): what any CPU can do."""
    return Host(wide.triple, wide.cpu, wide.features, NARROW, shuffles=False)


@cache
def _sources() -> str:
    """Hash of the sources of the package: of the compiler, and of the front end before it."""
    digest = hashlib.sha256()
    here = Path(__file__).parent
    for path in sorted((*here.glob("*.py"), *here.parent.glob("*.py"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@cache
def _machine(host: Host) -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(host.triple)
    return target.create_target_machine(
        cpu=host.cpu, features=host.features, opt=2, reloc="pic", codemodel="small"
    )


def object_code(ir: str, host: Host) -> bytes:
    """LLVM IR -> a relocatable object, by code generation alone: no optimiser's pass is worth its time."""
    with _lock:
        machine = _machine(host)
        module = llvm.parse_assembly(ir)
        try:
            module.verify()  # the code generator would abort the process
            module.triple = host.triple
            module.data_layout = str(machine.target_data)
            return bytes(machine.emit_object(module))
        finally:
            module.close()
