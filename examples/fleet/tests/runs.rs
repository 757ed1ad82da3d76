//! Runs the example, and compares what it prints.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::process::Command;

const STORY: &str = "\
Projects red and blue are created.
  blue: quota of namespace default created
  red: quota of namespace default created
  = clusters: blue ready, red ready
The template banner is created; red selects it.
  red: copy of banner created
  = clusters: blue ready, red ready
  = template banner: copies in [red]
blue selects it, too.
  blue: copy of banner created
  = clusters: blue ready, red ready
  = template banner: copies in [red, blue]
Somebody changes the copy in blue.
  blue: copy of banner updated
  = clusters: blue ready, red ready
  = template banner: copies in [red, blue]
green is created, and broken: one of its definitions is refused.
  green: quota of namespace default created
  = clusters: blue ready, green ready, red ready
  = project green is not ready: DefinitionsRefused: widgets.example.com: \"GoodList\" is already in use
  = template banner: copies in [red, blue]
That definition is withdrawn.
  = clusters: blue ready, green ready, red ready
  = template banner: copies in [red, blue]
green is deleted.
  = clusters: blue ready, red ready
  = template banner: copies in [red, blue]
blue is suspended.
  = clusters: red ready
  = project blue is not ready: Suspended: the project is suspended
  = template banner: copies in [red, blue]
A namespace is created in red: the work there goes on.
  red: quota of namespace shop created
  = clusters: red ready
  = project blue is not ready: Suspended: the project is suspended
  = template banner: copies in [red, blue]
red does not select the template any more.
  red: copy of banner deleted
  = clusters: red ready
  = project blue is not ready: Suspended: the project is suspended
  = template banner: copies in [blue]
The template is deleted; it waits for blue.
  = clusters: red ready
  = project blue is not ready: Suspended: the project is suspended
  = template banner: copies in [blue]
blue is back.
  blue: copy of banner deleted
  = clusters: blue ready, red ready
Another template is created; blue selects it.
  blue: copy of terms created
  = clusters: blue ready, red ready
  = template terms: copies in [blue]
blue is deleted.
  host: terms has no copy in blue any more
  = clusters: red ready
  = template terms: copies in []
";

#[test]
fn it_tells_what_happens_to_the_projects() {
    let output = Command::new(env!("CARGO_BIN_EXE_k1s-example-fleet")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), STORY);
}
