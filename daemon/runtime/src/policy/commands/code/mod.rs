//! One-liners in other languages: whether one is clearly harmless.
//!
//! Nothing here tries to find what is dangerous. A one-liner passes only when every name in it is known to compute
//! or print; whatever is not recognised is asked about.

mod javascript;
mod others;
mod python;
mod tokens;

/// A language with programs on its command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Python,
    JavaScript,
    Perl,
    Ruby,
    Php,
    /// Lua, R, Julia, and others: never recognised.
    Other,
}

/// Whether the code only computes and prints. `may_read` says whether a file that it opens may be read.
pub(super) fn is_harmless(language: Language, code: &str, may_read: &dyn Fn(&str) -> bool) -> bool {
    if code.contains('\0') || code.len() > 20_000 {
        return false;
    }
    match language {
        Language::Python => python::is_harmless(code, may_read),
        Language::JavaScript => javascript::is_harmless(code),
        Language::Perl => others::perl(code),
        Language::Ruby => others::ruby(code),
        Language::Php => others::php(code),
        Language::Other => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn harmless(language: Language, code: &str) -> bool {
        is_harmless(language, code, &|path| !path.contains("secret"))
    }

    #[test]
    fn python_that_computes_passes_and_all_else_does_not() {
        for code in [
            "print(1)",
            "import json,sys; json.load(sys.stdin)",
            "import json,sys; print(json.load(sys.stdin)['a'][0])",
            "import sys; print(sys.version)",
            "import numpy; print(numpy.__version__)",
            "print(open('data.json').read())",
            "print('\\n'.join(sorted(x.strip() for x in open('a.txt'))))",
            "import os; print(os.path.join('a', 'b'))",
            "print(f'{1+1:>3}')",
            "import re\nfor m in re.findall('a', 'aa'):\n    print(m)",
            "x = 2**10; print(x)",
        ] {
            assert!(harmless(Language::Python, code), "{code}");
        }
        for code in [
            "import os; os.system('id')",
            "import os; os.replace('a','b')",
            "import os as s; s.replace('a','b')",
            "from os import replace; replace('a','b')",
            "import shutil; shutil.rmtree('/')",
            "__import__('os').system('id')",
            "exec('x')",
            "print(open('secret').read())",
            "open('a','w')",
            "open('a', mode='w')",
            "print(f\"{__import__('os').system('id')}\")",
            "getattr(x, 'y')",
            "import subprocess; subprocess.run(['id'])",
            "import sys; sys.modules['os'].system('id')",
            "import numpy; numpy.load('x')",
            "import socket",
            "from os import *",
            "print(().__class__)",
            "import pathlib; pathlib.Path('x').unlink()",
            "o=open; o('x','w')",
        ] {
            assert!(!harmless(Language::Python, code), "{code}");
        }
    }

    #[test]
    fn javascript_that_computes_passes_and_all_else_does_not() {
        for code in [
            "console.log(1)",
            "process.version",
            "require('./package.json').version",
            "console.log(JSON.stringify({a: 1}, null, 2))",
            "const p = require('./package.json'); console.log(p.scripts.build)",
            "[1,2].map(x => x * 2)",
        ] {
            assert!(harmless(Language::JavaScript, code), "{code}");
        }
        for code in [
            "require('child_process').execSync('id')",
            "child_process.execSync('id')",
            "fs.unlinkSync('x')",
            "process.kill(1)",
            "process['binding']('fs')",
            "global.process.exit()",
            "eval('x')",
            "new Function('x')()",
            "(()=>{}).constructor('x')()",
            "import('fs')",
            "`${require('fs')}`",
            "/\"/.test(x); fs.rmSync('x'); \"/\"",
            "fetch('http://x')",
            "require('fs').rmSync('x')",
        ] {
            assert!(!harmless(Language::JavaScript, code), "{code}");
        }
    }

    #[test]
    fn other_languages_pass_when_they_print() {
        for (language, code) in [
            (Language::Perl, "print \"hello\\n\""),
            (Language::Perl, "s/foo/bar/g"),
            (Language::Perl, "print if /error/"),
            (Language::Perl, "print $F[0]"),
            (Language::Ruby, "puts RUBY_VERSION"),
            (Language::Ruby, "puts 1 + 1"),
            (Language::Php, "echo PHP_VERSION;"),
        ] {
            assert!(harmless(language, code), "{code}");
        }
        for (language, code) in [
            (Language::Perl, "system('id')"),
            (Language::Perl, "print `id`"),
            (Language::Perl, "s/x/system('id')/e"),
            (Language::Perl, "print \"@{[system 'id']}\""),
            (Language::Perl, "unlink 'x'"),
            (Language::Perl, "/(?{ system 'id' })/"),
            (Language::Perl, "s{x}{unlink 'y'}e"),
            (Language::Ruby, "puts `id`"),
            (Language::Ruby, "puts \"#{`id`}\""),
            (Language::Ruby, "system 'id'"),
            (Language::Ruby, "File.delete 'x'"),
            (Language::Php, "system('id');"),
            (Language::Php, "echo `id`;"),
            (Language::Php, "unlink('x');"),
            (Language::Php, "$f='system'; $f('id');"),
            (Language::Other, "print(1)"),
        ] {
            assert!(!harmless(language, code), "{code}");
        }
    }
}
