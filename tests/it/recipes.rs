//! Every recipe that comes with the program, put together as the form does it and run on the real cluster.
//!
//! Some programs are not on the test cluster: `PyTorch`, `TensorFlow`, R, Apptainer, s5cmd and Hugging Face's hf. There a
//! few lines of shell or Python stand in for them that tell how they were called; each test that does so says it.

use std::sync::Arc;

use portolan::recipes::catalog::RecipeCatalog;
use portolan::recipes::compose::{ComposedJob, compose};
use portolan::recipes::context::{AvailableGpu, ComposeCluster, SubmitAccount};
use portolan::recipes::form::RecipeQuestionForm;
use portolan::sites::{self, Site};

use crate::support::cluster::Cluster;

/// Who runs them.
const USER: &str = "carol";

/// A site as she finds it. Its folders have the same names everywhere, so that scripts of sites can be compared.
pub fn place(site: &Site) -> ComposeCluster {
    let gpu = |gpu: &sites::SiteGpu| AvailableGpu {
        model: Some(gpu.name.clone()),
        label: gpu.label.clone(),
        partition: gpu.partition.clone(),
        cores: Some(1),
        memory_gb: Some(1),
        ..AvailableGpu::default()
    };
    let folders = [("HOME", "home"), ("SCRATCH", "scratch")];
    let account = SubmitAccount { name: "def-smith".into(), for_cpu: true, for_gpu: true, ..SubmitAccount::default() };
    ComposeCluster {
        gpus: site.jobs.gpus.iter().map(gpu).collect(),
        site: Arc::new(site.clone()),
        user: USER.into(),
        accounts: vec![account],
        partitions: Vec::new(),
        folders: folders.map(|(name, top)| (name.to_owned(), format!("/{top}/{USER}"))).into_iter().collect(),
        max_array: Some(1000),
        keeps_comments: true,
    }
}

/// What the form makes of a recipe with a few answers; the others stay as the form has them at first.
pub fn composed(recipe: &str, answers: &[(&str, &str)], place: &ComposeCluster) -> ComposedJob {
    let book = RecipeCatalog::shipped();
    let form = RecipeQuestionForm::new(book.find(recipe).unwrap(), &book.blocks);
    let mut all = form.defaults(place);
    all.extend(answers.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())));
    compose(&form, &all, place)
}

/// Runs a command as her, and gives what it prints.
fn shell(command: &str, args: &[&str]) -> String {
    let mut all = vec!["exec", "--as", USER, "bash", "-c", command, "bash"];
    all.extend(args);
    let done = Cluster::get().script(&all);
    assert!(done.status.success(), "{command}: {done:?}");
    String::from_utf8(done.stdout).unwrap()
}

fn write(path: &str, text: &str) {
    shell("mkdir -p \"$(dirname \"$1\")\" && printf %s \"$2\" >\"$1\" && chmod +x \"$1\"", &[path, text]);
}

/// A folder of a test's own, with a space in its name as people have them.
fn folder(test: &str) -> String {
    let path = format!("/scratch/{USER}/recipes {test} {}", std::process::id());
    shell("mkdir -p \"$1\"", &[&path]);
    path
}

struct Job {
    number: String,
    folder: String,
}

/// What became of a job.
struct Ended {
    states: String,
    output: String,
}

impl Ended {
    fn well(self) -> String {
        let good = self.states.lines().all(|state| state == "COMPLETED");
        assert!(good, "{}\n{}", self.states, self.output);
        self.output
    }
}

/// Puts a recipe together and submits it. `first`: a line that the test wants to run before everything else.
fn submit(recipe: &str, answers: &[(&str, &str)], folder: &str, first: &str) -> Job {
    let demo = sites::presets().iter().find(|site| site.name.as_str() == "demo").unwrap();
    let mut all = vec![("folder", folder), ("time", "10m")];
    all.extend(answers);
    let job = composed(recipe, &all, &place(demo));
    assert_eq!(job.problems, [], "{recipe}");
    let opening = "export SLURM_EXPORT_ENV=ALL\n";
    let script = job.build_script().replacen(opening, &format!("{opening}{first}\n"), 1);
    let number = shell("cd \"$2\" && printf %s \"$1\" | sbatch --parsable", &[&script, folder]).trim().to_owned();
    Job { number, folder: folder.to_owned() }
}

impl Job {
    /// Waits for the end, and gives the states and all that it printed.
    fn end(&self) -> Ended {
        let wait = "until [ -z \"$(squeue -h -j \"$1\" -t PD,R,CG,CF -o %i 2>/dev/null)\" ]; do sleep 0.3; done
            scontrol -o show job \"$1\" | grep -o 'JobState=[A-Z_]*' | cut -d= -f2";
        let states = shell(wait, &[&self.number]);
        let output = shell("cat \"$1\"/*\"-$2\"*.out", &[&self.folder, &self.number]);
        Ended { states, output }
    }
}

/// What a new member does on the first morning, with all that the demo cluster brings along for it.
#[test]
fn a_training_with_packages_from_wheels_and_data_from_an_archive() {
    let folder = folder("training");
    let answers = [
        ("script", "~/examples/learn.py"),
        ("arguments", "--epochs 8"),
        ("environment", "wheels"),
        ("packages", "halfmoons"),
        ("wheels", "/project/examples/wheels"),
        ("data", "/project/examples/moons.tar.gz"),
        ("keep", "true"),
    ];
    shell("[ -e ~/examples ] || cp -r /project/examples ~/examples", &[]);
    let job = submit("python-script", &answers, &folder, "");
    let output = job.end().well();
    assert!(output.contains("learned: accuracy 0.9"), "{output}");
    let kept = shell("cat \"$1/python-$2/results/metrics.csv\"", &[&folder, &job.number]);
    assert_eq!(kept.lines().count(), 9);
    assert_eq!(output.matches("Results are in").count(), 1);
}

/// Saves what it has when it is told to end, which takes it a moment.
const PATIENT: &str = "import os, signal, sys, time
def end(*_):
    time.sleep(float(sys.argv[1]))
    open(os.environ['SLURM_TMPDIR'] + '/results/saved', 'w').write('all of it')
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
os.makedirs(os.environ['SLURM_TMPDIR'] + '/results')
print('ready', flush=True)
time.sleep(300)
";

#[test]
fn results_are_copied_when_the_job_is_stopped() {
    let folder = folder("stopped");
    let script = format!("{folder}/patient.py");
    write(&script, PATIENT);
    let start = |pause: &str| {
        let answers = [("script", script.as_str()), ("arguments", pause), ("keep", "true")];
        submit("python-script", &answers, &folder, "")
    };
    let (warned, cancelled) = (start("0.5"), start("0"));
    for (job, how) in [(&warned, "--signal=USR1 --batch"), (&cancelled, "")] {
        let stop = format!("until grep -qs ready \"$1\"/*\"-$2.out\"; do sleep 0.2; done; scancel {how} \"$2\"");
        shell(&stop, &[&folder, &job.number]);
    }
    for (job, state) in [(warned, "FAILED"), (cancelled, "CANCELLED")] {
        let ended = job.end();
        assert_eq!(ended.states.trim(), state, "{}", ended.output);
        assert_eq!(ended.output.matches("Results are in").count(), 1, "{}", ended.output);
        let kept = shell("cat \"$1/python-$2/results/saved\"", &[&folder, &job.number]);
        assert_eq!(kept, "all of it");
    }
}

#[test]
fn a_long_run_goes_on_in_pieces_until_it_is_finished() {
    let folder = folder("pieces");
    let script = format!("{folder}/count.py");
    let count = "import os, sys
results = os.environ['SLURM_TMPDIR'] + '/results'
os.makedirs(results, exist_ok=True)
before = open(results + '/count').read() if '--resume' in sys.argv else ''
open(results + '/count', 'w').write(before + 'x')
print('counted', len(before) + 1)
sys.exit(len(before) < 1)
";
    write(&script, count);
    let answers =
        [("script", script.as_str()), ("keep", "true"), ("in_pieces", "true"), ("pieces", "3"), ("resume", "--resume")];
    let job = submit("python-script", &answers, &folder, "");
    let ended = job.end();
    for words in ["counted 1", "counted 2", "An earlier job has already finished the work."] {
        assert_eq!(ended.output.matches(words).count(), 1, "{}", ended.output);
    }
    assert_eq!(shell("cat \"$1/python-$2/results/count\"", &[&folder, &job.number]), "xx");
}

/// A script that stands in for a training with `PyTorch`: it meets the others at the address that they were given.
const MEETING: &str = "import os, socket, time
import halfmoons
rank, size = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
points = len(halfmoons.load(os.environ['SLURM_TMPDIR'] + '/data')[0])
place = os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT'])
if rank == 0:
    server = socket.create_server(place)
    names = sorted(server.accept()[0].makefile().read() for _ in range(size - 1))
    print('met', names, 'with', points, 'points', flush=True)
else:
    for _ in range(100):
        try:
            meeting = socket.create_connection(place)
            break
        except OSError:
            time.sleep(0.2)
    meeting.sendall((str(rank) + ' of ' + os.environ['SLURMD_NODENAME']).encode())
    meeting.close()
";

/// Two nodes, each with its own disk: packages, data and code must be on both.
#[test]
fn multi_node_programs_find_packages_data_code_and_each_other() {
    let folder = folder("nodes");
    let (work, repository) = (format!("{folder}/work"), format!("{folder}/code.git"));
    write(&format!("{work}/meet.py"), MEETING);
    repository_of(&work, &repository);
    let answers = [
        ("script", "meet.py"),
        ("nodes", "2"),
        ("gpus", "1"),
        ("gpu_model", ""),
        ("packages", "halfmoons"),
        ("wheels", "/project/examples/wheels"),
        ("data", "/project/examples/moons.tar.gz"),
        ("code", "git"),
        ("code_repository", &repository),
        ("code_ref", "v1"),
    ];
    let output = submit("pytorch-many", &answers, &folder, "").end().well();
    assert!(output.contains("met ['1 of g2'] with 800 points"), "{output}");
}

/// Makes a bare repository of a folder, with a tag `v1`.
fn repository_of(work: &str, bare: &str) {
    let make = "cd \"$1\" && git init -q -b main . && git add . &&
        git -c user.name=carol -c user.email=carol@harbour commit -qm first && git tag v1 &&
        git clone -q --bare . \"$2\" && git remote add origin \"$2\"";
    shell(make, &[work, bare]);
}

/// Torch, tensorflow, R and Apptainer are stand-ins: a module beside the script, and commands on the path.
#[test]
fn gpu_container_and_r_recipes_run() {
    let folder = folder("others");
    write(&format!("{folder}/torch.py"), "name = 'torch'");
    write(&format!("{folder}/tensorflow.py"), "name = 'tensorflow'");
    let script = format!("{folder}/train it.py");
    let train = "import os, sys, importlib
print(importlib.import_module(sys.argv[1]).name, sys.argv[2], 'on GPU', os.environ['CUDA_VISIBLE_DEVICES'])";
    write(&script, train);
    let apptainer = "#!/bin/bash
echo \"apptainer: $*\"
while [ \"$1\" != \"$IMAGE\" ]; do shift; done
shift
exec \"$@\"
";
    write(&format!("{folder}/bin/apptainer"), apptainer);
    write(&format!("{folder}/bin/Rscript"), "#!/bin/bash\nprintf 'R: %s|' \"$@\"\n");
    let path = format!("export PATH='{folder}/bin':$PATH IMAGE='{folder}/my image.sif'");

    let gpu = |recipe: &str, module: &str| {
        let arguments = format!("{module} 'two words'");
        let answers = [("script", script.as_str()), ("arguments", &arguments), ("environment", "modules")];
        submit(recipe, &answers, &folder, "")
    };
    let torch = gpu("pytorch", "torch");
    let tensorflow = gpu("tensorflow", "tensorflow");
    let image = format!("{folder}/my image.sif");
    let answers = [
        ("image", image.as_str()),
        ("command", "printf '<%s>' 'a b' $SLURM_JOB_ID"),
        ("binds", "$PROJECT\n/opt"),
        ("gpus", "1"),
    ];
    let container = submit("container", &answers, &folder, &path);
    let answers = [("script", "my analysis.R"), ("arguments", "--n 'a b'")];
    let r = submit("r-script", &answers, &folder, &path);

    assert!(torch.end().well().contains("torch two words on GPU "));
    assert!(tensorflow.end().well().contains("tensorflow two words on GPU "));
    let number = container.number.clone();
    let output = container.end().well();
    assert!(output.contains(&format!("<a b><{number}>")), "{output}");
    assert!(output.contains("--bind /project/def-smith --bind /opt --nv"), "{output}");
    let output = r.end().well();
    assert!(output.contains("R: my analysis.R|R: --n|R: a b|"), "{output}");
}

#[test]
fn a_sweep_runs_its_command_at_every_point() {
    let folder = folder("sweep");
    let answers = [
        ("parameters", "lr = 0.1, 0.01\nwith = 'a b', c"),
        ("command", "echo \"got $lr and $with\" >\"point $SLURM_ARRAY_TASK_ID\"\n# done"),
    ];
    let output = submit("sweep", &answers, &folder, "").end().well();
    assert!(output.contains("Task 3 of 0 to 3: lr=0.01 with=c"), "{output}");
    let points = shell("cd \"$1\" && cat point*", &[&folder]);
    assert_eq!(points, "got 0.1 and a b\ngot 0.1 and c\ngot 0.01 and a b\ngot 0.01 and c\n");
}

#[test]
fn a_script_of_ones_own_runs_as_it_is() {
    let folder = folder("own");
    let script = "#!/bin/bash\n#SBATCH --time=5 --mem=150M\necho \"own: $SLURM_JOB_NAME $SLURM_MEM_PER_NODE $0\"\n";
    let answers = [("script", script), ("job_name", "mine"), ("options", "--nice=10"), ("time", "")];
    let job = submit("own-script", &answers, &folder, "");
    assert!(job.end().well().contains("own: mine 150 "));
}

/// pip asks for nothing outside: it is told to look at the demo cluster's wheels only, where it would ask the internet.
#[test]
fn environments_and_wheels_are_prepared() {
    let folder = folder("prepare");
    let (target, wheels) = (format!("{folder}/env"), format!("{folder}/wheels"));
    let answers = [("target", target.as_str()), ("packages", "halfmoons"), ("wheels", "/project/examples/wheels")];
    let environment = submit("prepare-environment", &answers, &folder, "");
    let requirements = format!("{folder}/requirements.txt");
    write(&requirements, "halfmoons==1.0\n");
    let answers = [("target", wheels.as_str()), ("requirements", &requirements)];
    let offline = "export PIP_NO_INDEX=1 PIP_FIND_LINKS=/project/examples/wheels";
    let collected = submit("collect-wheels", &answers, &folder, offline);

    assert!(environment.end().well().contains("halfmoons==1.0"));
    let version = "\"$1/bin/python3\" -c 'import halfmoons; print(halfmoons.__version__)'";
    assert_eq!(shell(version, &[&target]).trim(), "1.0");
    assert!(collected.end().well().contains("halfmoons-1.0-py3-none-any.whl"));
}

#[test]
fn folder_is_packed_into_an_archive() {
    let folder = folder("pack");
    let source = format!("{folder}/many files");
    shell("mkdir -p \"$1/below\" && touch \"$1\"/{1..9} \"$1/below/a b\"", &[&source]);
    let jobs = [".tar", ".tar.gz", ".tar.zst", ".zip", ".rar"].map(|end| {
        let archive = format!("{folder}/packed/my data{end}");
        (end, submit("pack-folder", &[("source", &source), ("archive", &archive)], &folder, ""))
    });
    for (end, job) in jobs {
        let ended = job.end();
        if end == ".rar" {
            assert_eq!(ended.states.trim(), "FAILED");
            assert!(ended.output.contains("must end in .tar"), "{}", ended.output);
            continue;
        }
        let output = ended.well();
        assert!(output.contains("Packed 10 files"), "{output}");
        let list = if end == ".zip" { "unzip -l \"$1\"" } else { "tar -tf \"$1\"" };
        let list = shell(list, &[&format!("{folder}/packed/my data{end}")]);
        assert!(list.contains("below/a b"), "{list}");
    }
    assert_eq!(shell("ls -A \"$1/packed\" | wc -l", &[&folder]).trim(), "4");
}

/// The web server is one on the node itself; s5cmd and hf are stand-ins that tell how they were called.
#[test]
fn data_is_fetched() {
    let folder = folder("fetch");
    let target = format!("{folder}/my data");
    write(&format!("{folder}/web/a.txt"), "from the web\n");
    for name in ["s5cmd", "hf"] {
        write(&format!("{folder}/bin/{name}"), &format!("#!/bin/bash\necho \"{name}: $*\"\n"));
    }
    let path = format!("export PATH='{folder}/bin':$PATH");
    let port = 20_000 + std::process::id() % 10_000;
    let server = format!(
        "python3 -m http.server --bind 127.0.0.1 --directory '{folder}/web' {port} &
until (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null; do sleep 0.1; done"
    );
    let get = |answers: &[(&str, &str)], first: &str| {
        let mut all = vec![("target", target.as_str()), ("environment", "none")];
        all.extend(answers);
        submit("fetch-data", &all, &folder, first)
    };
    let address = format!("http://127.0.0.1:{port}/a.txt?once");
    let sum = shell("cd \"$1/web\" && sha256sum a.txt", &[&folder]);
    let web = get(&[("addresses", &address), ("checksum", sum.trim())], &server);
    let s3 = get(
        &[("from", "s3"), ("bucket", "s3://bucket/part/*"), ("endpoint", "https://s3.example.org"), ("public", "true")],
        &path,
    );
    let hf = get(&[("from", "huggingface"), ("repository", "ylecun/mnist"), ("revision", "v2")], &path);

    assert!(web.end().well().contains("a.txt: OK"));
    assert_eq!(shell("cat \"$1/a.txt\"", &[&target]), "from the web\n");
    let wrong = format!("{}  a.txt", "0".repeat(64));
    let ended = get(&[("addresses", &address), ("checksum", &wrong)], "").end();
    assert_eq!(ended.states.trim(), "FAILED", "{}", ended.output);
    assert!(ended.output.contains("a.txt: FAILED"), "{}", ended.output);
    let output = s3.end().well();
    let call = "s5cmd: --endpoint-url https://s3.example.org --no-sign-request cp s3://bucket/part/* .";
    assert!(output.contains(call), "{output}");
    let output = hf.end().well();
    let call = "hf: download ylecun/mnist --repo-type dataset --revision v2 --max-workers 1 --local-dir .";
    assert!(output.contains(call), "{output}");
}

#[test]
fn code_is_copied_and_brought_up_to_date() {
    let folder = folder("code");
    let (work, bare, target) = (format!("{folder}/work"), format!("{folder}/my code.git"), format!("{folder}/copy"));
    write(&format!("{work}/a.py"), "first");
    repository_of(&work, &bare);
    let get = |reference: &str| {
        let answers = [("address", bare.as_str()), ("target", &target), ("ref", reference)];
        let output = submit("get-code", &answers, &folder, "").end().well();
        (output, shell("cat \"$1/a.py\"", &[&target]))
    };
    assert_eq!(get("v1").1, "first");
    let change = "cd \"$1\" && printf second >a.py &&
        git -c user.name=carol -c user.email=carol@harbour commit -qam second && git push -q origin main";
    shell(change, &[&work]);
    let (output, text) = get("main");
    assert_eq!(text, "second", "{output}");
    assert!(output.contains("Now at commit"), "{output}");
    assert_eq!(get("v1").1, "first");
    assert_eq!(get("").1, "second", "without a version it is the newest of the usual branch");
}
