"""What an app is made of: serves its sources, and puts stand-ins in the place of those that cannot be had here."""

import re
import shutil

import charts
import clusters
import images
import job_image
import proxy
import stand_ins
from config import source_of
from programs import CUSTOMER, REGION
from repositories import HOST, Repositories

# Where a box without an image, which shows the machine's `/usr`, finds programs.
OF_A_BOX = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# A program that a script calls with a subcommand, and that a machine may lack.
CALLED = re.compile(
    r"(?:^|[|;&(`]|\b(?:if|while|then|do|!))[ \t]*(aws|helm|kubectl|psql|argocd|tailscale)[ \t]+[a-z-]", re.M
)
# Where images are that only some may read.
PRIVATE = ("aws_ecr", "gcp_gar", "azure_acr")
# What a module that is not here hands out of its cluster.
CLUSTER = dict.fromkeys(("name", "arn", "endpoint", "certificate_authority_data"), "")


def serve(app):
    """Serves the repositories that the config names, with stand-ins for modules whose providers cannot be had."""
    repositories = app.repositories = Repositories(app.sources, app.work / "repositories")
    invent_missing(app, repositories)
    app.pulumi = job_image.PULUMI if app.config.programs() else None
    without_image = app.tools.give(app)
    if not app.has_own_tools:  # nobody knows what is in them
        leave_out_lacking_programs(app, None if without_image else app.tools.programs(app))
    handlers = serve_images(app)
    replace_modules(app, repositories)
    replace_programs(app, repositories)
    named = app.config.repositories()
    for name, references in named.items():
        repositories.commit(name, references)
    app.programs.variables.update(repositories.settings())
    app.build_variables = proxy.serve(app.work, {**handlers, HOST: repositories.handler()})
    served, registries = ", ".join(sorted(named)) or "none", ", ".join(sorted(handlers)) or "none"
    app.images = sorted(handlers)
    replaced = (
        f"stand-ins of parts: {', '.join(sorted(app.stand_ins)) or 'none'}, of images and charts in: {registries}"
    )
    return f"repositories: {served}; {replaced}; tool image: {without_image or 'made'}"


def invent_missing(app, repositories):
    """Makes stand-ins for sources that are not in the directory of sources; leaves out what cannot have one."""

    def lacks(*tables):
        sources = (source for table in tables if (source := source_of(table)))
        return next(filter(None, (missing(app, repositories, source) for source in sources)), None)

    # All are looked for before the first is made: it may be in a repository that others name too.
    parts = [("sandbox", app.config.sandbox())]
    parts += [(name, table) for name, (_, table) in app.config.entries("component").items()]
    of_parts = [(name, table, why) for name, table in parts if (why := lacks(table))]
    of_actions = {name: lacks(*table.get("steps", [])) for name, (_, table) in app.config.entries("action").items()}
    for name, table, why in of_parts:
        if invent(app, repositories, name, table):
            app.replace(name, why)
        else:
            app.config.leave_out("component", name, why)
    for name, why in of_actions.items():
        if why:
            app.config.leave_out("action", name, why)


def missing(app, repositories, source):
    """Returns why a source is not here, or nothing."""
    if source.repository is None:
        is_here = (app.config.folder / source.directory).is_dir()
        return None if is_here else f"the config has no directory `{source.directory}`"
    folder = repositories.copy(source.repository)
    if folder is None:
        return f"`{source.repository}` is not in the directory of sources"
    if not (folder / source.directory).is_dir():
        return f"`{source.repository}` has no directory `{source.directory}`"
    return None


def invent(app, repositories, name, table):
    """Writes a stand-in for a source that is not here; returns whether there is one for its type."""
    source, kind = source_of(table), table.get("type", "terraform")
    if source.repository and source.repository.count("/") != 1:
        return False  # on another host
    patches = table.get("kustomize", {}).get("patches")
    if kind not in ("helm_chart", "terraform_module", "terraform", "pulumi") and ("kustomize" not in table or patches):
        return False
    folder = repositories.make(source.repository) if source.repository else app.config.folder
    folder /= source.directory
    folder.mkdir(parents=True, exist_ok=True)
    if kind == "helm_chart":
        charts.write_chart(folder, table.get("chart_name", name))
    elif kind == "pulumi":
        (folder / "Pulumi.yaml").write_text(f"name: stand-in\nruntime: {table.get('runtime', 'go')}\n")
    elif "kustomize" in table:
        charts.write_kustomization(folder / table["kustomize"].get("path", "."), name, source.repository)
    else:
        reads, _ = app.config.reads(name)
        outputs = dict.fromkeys((read.partition(".")[0] for read in reads), "")
        if name in app.config.clusters() or (name == "sandbox" and app.config.needs_cluster()):
            outputs["cluster"] = CLUSTER
        stand_ins.write_module(folder, table.get("vars", {}), outputs)
    return True


def write_version(app, name, version, older):
    """Writes an older version of an API into the files of a component; returns whether there was one to write."""
    # As it is, or as the helpers of a chart print it.
    pattern = re.compile(rf"(apiVersion:\s*|[\"']){re.escape(version)}(?=[\"'\s]|$)")
    return _rewrite(app, name, pattern, rf"\g<1>{older}")


def drop_empty_defaults(app, name):
    """Removes defaults that are empty texts from the files of a component; returns whether there were any."""
    return _rewrite(app, name, re.compile(r"^[ \t]*default: (\"\"|'')[ \t]*\n", re.MULTILINE), "")


def _rewrite(app, name, pattern, new):
    """Replaces what matches in the config and the sources of a component; returns whether something did."""
    file, table = app.config.entries("component").get(name, (None, {}))
    source, manifest = source_of(table), table.get("manifest", "")
    files = [file] if file else []
    if manifest.startswith("./"):
        files += app.config.named(file, manifest)
    if source and source.repository:
        folder = app.repositories.copy(source.repository) / source.directory
        files += [one for one in folder.rglob("*") if one.suffix in (".yaml", ".yml", ".tpl")]
    changed = False
    for one in files:
        text = one.read_text(errors="surrogateescape")
        if (rewritten := pattern.sub(new, text)) != text:
            one.write_text(rewritten, errors="surrogateescape")
            changed = True
    if changed and source and source.repository:
        app.repositories.commit(source.repository, {source.reference})
    return changed


def leave_out_lacking_programs(app, of_image):
    """Leaves out actions whose scripts call a program that is not here; some wait long before they give up."""
    for name, (_, table) in app.config.entries("action").items():
        if "image" in table:
            continue
        scripts = [step.get("inline_contents", "") + step.get("command", "") for step in table.get("steps", [])]
        called = {found[1] for script in scripts for found in CALLED.finditer(script)}
        if of_image is None:
            lacking = {program for program in called if not shutil.which(program, path=OF_A_BOX)}
        else:
            lacking = called - of_image
        if lacking:
            app.config.leave_out("action", name, f"needs `{min(lacking)}`, which is not on this machine")


def serve_images(app):
    """Returns what answers for the registries of public images and charts, and for repositories of charts; leaves out
    what comes from elsewhere."""
    image, hosts, of_registries, repositories = images.layout(app.work / "image"), set(), {}, charts.Repositories()
    for name, (_, table) in app.config.entries("component").items():
        of_job = table.get("image_url", "") if table.get("type") == "job" else ""
        public, address = table.get("public", {}).get("image_url"), table.get("helm_repo", {}).get("repo_url")
        public = public or (of_job if "{{" not in of_job else None)
        private = next((table[key].get("image_url") for key in PRIVATE if key in table), None)
        if private:
            app.config.leave_out("component", name, f"image `{private}` is in a private registry")
        elif public and not image:
            app.config.leave_out("component", name, f"image `{public}` needs `busybox`, which stands in for it")
        elif public and "{{" not in public:
            hosts.add(images.host_of(public))
        elif address and "{{" not in address and address.startswith(("https://", "oci://")):
            chart, version = table["helm_repo"].get("chart", name), table["helm_repo"].get("version")
            if address.startswith("oci://"):
                host, _, path = address.removeprefix("oci://").strip("/").partition("/")
                hosts.add(images.host_of(f"{host}/{path}"))
                of_registries[f"{path}/{chart}".lstrip("/")] = charts.write_layout(
                    app.work / f"chart-{name}", chart, version
                )
            else:
                repositories.add(address, chart, version)
            app.replace(name, f"the chart of `{address}` cannot be fetched")
        elif address is not None:
            app.config.leave_out("component", name, f"`{address}` is not served here")
    return {**dict.fromkeys(hosts, images.registry(image, of_registries)), **repositories.handlers()}


def replace_modules(app, repositories):
    """Puts stand-ins in the place of modules whose providers cannot be had."""
    for folder, names in _folders(app, app.config.modules(), repositories):
        if stand_ins.is_needed(folder):
            every, lists = (set().union(*parts) for parts in zip(*map(app.config.reads, names), strict=True))
            known = known_of(app, names, stand_ins.outputs(folder))
            stand_ins.replace(folder, every | of_cluster(known), lists, known)
            for name in names:
                app.replace(name, "its module's providers are not here")


def replace_programs(app, repositories):
    """Gives every program of Pulumi a stand-in; the tool image has what stands in for `pulumi`."""
    for folder, names in _folders(app, app.config.programs(), repositories):
        every, lists = (set().union(*parts) for parts in zip(*map(app.config.reads, names), strict=True))
        outputs = {path.partition(".")[0] for path in every}
        outputs |= {"cluster"} if app.config.clusters() & set(names) else set()
        known = known_of(app, names, outputs)
        variables, keys = zip(*map(app.config.settings_of_program, names), strict=True)
        settings = (sum(variables, []), sum(keys, []))
        stand_ins.replace_program(folder, settings, every | of_cluster(known), lists, known)
        for name in names:
            app.replace(name, "its program's providers, and Pulumi, are not here")


def _folders(app, modules, repositories):
    """Yields each folder that `modules` name, with the components that are made of it."""
    owners = {}
    for module in modules:
        owners.setdefault((module.source.repository, module.source.directory), []).append(module.owner)
    for (repository, directory), names in owners.items():
        yield (repositories.copy(repository) if repository else app.config.folder) / directory, names


def known_of(app, names, outputs):
    """Returns what is known of the outputs of parts: of the sandbox, and of components that make clusters."""
    return facts(app, outputs) if {"sandbox", *app.config.clusters()} & set(names) else {}


def of_cluster(known):
    """Returns the paths of a cluster that are known: whoever deploys into it reads them without a template."""
    return {path for path in known if path.startswith("cluster.")}


def facts(app, outputs):
    """Returns what is known of the account, and of the cluster when it is handed out; there is one for all."""
    known = {"account.id": CUSTOMER, "account.region": REGION}
    if "cluster" in outputs and (lacking := clusters.missing()):
        app.config.left_out["sandbox", "cluster"] = lacking
    elif "cluster" in outputs:
        if app.cluster is None:
            app.cluster = clusters.make(app.programs)
            clusters.make_namespaces(app.programs, app.config)
        known |= {f"cluster.{name}": value for name, value in app.cluster.items()}
    return known
