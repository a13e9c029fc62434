# SPDX-License-Identifier: Apache-2.0
from spack.package import *


class LeidenZipper(MakefilePackage):
    """One MPI world over clusters that share no network: a forwarder on nodes that are on both
    networks, and a library on top of each cluster's own MPI."""

    homepage = "https://github.com/leidenzipper/zipper"
    git = "https://github.com/leidenzipper/zipper.git"

    license("Apache-2.0")

    version("main", branch="main")

    variant("verbs", default=True, description="InfiniBand and RoCE")

    depends_on("c", type="build")
    depends_on("go@1.26:", type="build")
    depends_on("gmake", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpi")
    depends_on("rdma-core", when="+verbs")

    def setup_build_environment(self, env):
        # scripts/build finds a compiler of each library by these.
        which = "MPICC_OPENMPI" if self.spec.satisfies("^[virtuals=mpi] openmpi") else "MPICC_MPICH"
        env.set(which, self.spec["mpi"].mpicc)
        env.set("GOMODCACHE", join_path(self.stage.path, "gomodcache"))
        env.set("GOFLAGS", "-modcacherw")

    def build(self, spec, prefix):
        library = "openmpi" if spec.satisfies("^[virtuals=mpi] openmpi") else "mpich"
        Executable("scripts/build")(library)

    def install(self, spec, prefix):
        install = Executable("scripts/install")
        install.add_default_env("PREFIX", str(prefix))
        install()
