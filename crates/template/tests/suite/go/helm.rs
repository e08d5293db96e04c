//! Go's engine: a chart whose one template renders every case with `tpl`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use freehold_skips::skip_as;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::Case;

/// The cases go in and come out as base64 of JSON, so that no reader of YAML changes them on the way.
const CHART_TEMPLATE: &str = r#"{{- $out := list -}}
{{- range ((.Values.cases | b64dec | fromJson).cases) -}}
{{- $out = append $out (tpl .text (merge (dict "Template" $.Template) .tree)) -}}
{{- end -}}
kind: Results
out: {{ $out | toJson | b64enc }}
"#;

pub(crate) struct Helm {
    program: PathBuf,
    home: TempDir,
}

impl Helm {
    /// Returns `helm`: the one that the tests' Python environment brings, or the one on the path. Says that `test` is
    /// skipped when there is none.
    pub(crate) fn find(test: &str) -> Option<Self> {
        let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/infra-venv");
        let venv = std::env::var_os("FREEHOLD_INFRA_VENV").map_or(target, PathBuf::from).join("bin");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let places = std::iter::once(venv).chain(std::env::split_paths(&path));
        match places.map(|folder| folder.join("helm")).find(|program| program.is_file()) {
            Some(program) => Some(Self::at(program)),
            None => {
                skip_as(test, "`helm` is not there; `tests/infra/run` installs it on x86-64");
                None
            }
        }
    }

    fn at(program: PathBuf) -> Self {
        let home = TempDir::new().unwrap();
        let chart = home.path().join("chart");
        std::fs::create_dir_all(chart.join("templates")).unwrap();
        std::fs::write(chart.join("Chart.yaml"), "apiVersion: v2\nname: cases\nversion: 1.0.0\n").unwrap();
        std::fs::write(chart.join("templates/cases.yaml"), CHART_TEMPLATE).unwrap();
        Self { program, home }
    }

    /// Renders every case. When one fails, the halves are tried apart, so that the others still count.
    pub(crate) fn all(&self, cases: &[Case]) -> Vec<Result<String, String>> {
        match self.run(cases) {
            Ok(out) => out.into_iter().map(Ok).collect(),
            Err(error) if cases.len() <= 1 => vec![Err(error)],
            Err(_) => {
                let (first, second) = cases.split_at(cases.len() / 2);
                [self.all(first), self.all(second)].concat()
            }
        }
    }

    pub(crate) fn one(&self, case: &Case) -> Result<String, String> {
        self.run(std::slice::from_ref(case)).map(|mut out| out.remove(0))
    }

    fn run(&self, cases: &[Case]) -> Result<Vec<String>, String> {
        let cases: Vec<Value> = cases.iter().map(|case| json!({ "text": case.text, "tree": case.tree })).collect();
        let values = json!({ "cases": BASE64.encode(json!({ "cases": cases }).to_string()) });
        let mut file = tempfile::NamedTempFile::new_in(self.home.path()).unwrap();
        file.write_all(values.to_string().as_bytes()).unwrap();
        let output = Command::new(&self.program)
            .args(["template", "cases", "chart", "--values"])
            .arg(file.path())
            .current_dir(self.home.path())
            .env_clear()
            .env("HOME", self.home.path())
            .output()
            .unwrap();
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let text = String::from_utf8(output.stdout).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("out: ")).unwrap();
        Ok(serde_json::from_slice(&BASE64.decode(line).unwrap()).unwrap())
    }
}
