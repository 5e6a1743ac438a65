//! Tests of document extraction through `read_file`.

use std::io::Write as _;

use pretty_assertions::assert_eq;
use serde_json::json;
use zip::write::{SimpleFileOptions, ZipWriter};

use crate::testing::Bench;

fn zipped(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, text) in parts {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(text.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[tokio::test]
async fn a_notebook_is_its_cells_and_their_text() {
    let bench = Bench::new();
    let notebook = json!({ "cells": [
        { "cell_type": "markdown", "source": ["# Title\n", "words"] },
        { "cell_type": "code", "source": "print(1)", "outputs": [
            { "output_type": "stream", "text": ["1\n"] },
            { "output_type": "display_data", "data": { "image/png": "AAAA", "text/plain": "<Figure>" } },
            { "output_type": "error", "ename": "ValueError", "evalue": "no" },
        ] },
    ] });
    bench.write("n.ipynb", notebook.to_string());
    let value = bench.json("read_file", json!({ "path": "n.ipynb" })).await;
    assert_eq!(value["extracted_document"], true);
    assert_eq!(
        value["content"],
        "1|# cell 1 [markdown]\n2|# Title\n3|words\n4|\n5|# cell 2 [code]\n6|print(1)\n7|# output\n8|1\n9|# output\n\
         10|<Figure>\n11|# output\n12|ValueError: no\n13|",
    );
}

#[tokio::test]
async fn a_word_document_is_its_paragraphs_and_tables() {
    let bench = Bench::new();
    let document = "<w:document xmlns:w=\"x\"><w:body>\
        <w:p><w:r><w:t>Fish &amp; chips &#8212; </w:t></w:r><w:r><w:t>hot</w:t></w:r></w:p>\
        <w:p/><w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc>\
        <w:tc><w:p><w:r><w:t>b</w:t><w:tab/><w:t>c</w:t></w:r></w:p></w:tc></w:tr></w:tbl>\
        <w:p><w:r><w:t>end</w:t></w:r></w:p></w:body></w:document>";
    bench.write("d.docx", zipped(&[("word/document.xml", document)]));
    let value = bench.json("read_file", json!({ "path": "d.docx" })).await;
    assert_eq!(value["content"], "1|Fish & chips — hot\n2|\n3|a\tb\tc\n4|end");
}

#[tokio::test]
async fn a_spreadsheet_is_its_rows() {
    let bench = Bench::new();
    let parts = [
        (
            "xl/workbook.xml",
            "<workbook xmlns:r=\"r\"><sheets><sheet name=\"Plan\" sheetId=\"1\" r:id=\"rId7\"/></sheets></workbook>",
        ),
        (
            "xl/_rels/workbook.xml.rels",
            "<Relationships><Relationship Id=\"rId7\" Target=\"worksheets/sheet1.xml\"/></Relationships>",
        ),
        ("xl/sharedStrings.xml", "<sst><si><t>name</t></si><si><r><t>a </t></r><r><t>b</t></r></si></sst>"),
        (
            "xl/worksheets/sheet1.xml",
            "<worksheet><sheetData><row><c r=\"A1\" t=\"s\"><v>0</v></c><c r=\"C1\"><v>2.5</v></c></row>\
             <row><c r=\"A2\" t=\"s\"><v>1</v></c><c r=\"B2\" t=\"inlineStr\"><is><t>in\nline</t></is></c></row>\
             </sheetData></worksheet>",
        ),
    ];
    bench.write("s.xlsx", zipped(&parts));
    let value = bench.json("read_file", json!({ "path": "s.xlsx" })).await;
    assert_eq!(value["content"], "1|# sheet Plan\n2|name\t\t2.5\n3|a b\tin line\n4|");
}

#[tokio::test]
async fn what_is_no_document_falls_through() {
    let bench = Bench::new();
    bench.write("n.ipynb", "{\"not\": \"a notebook\"}\n");
    let value = bench.json("read_file", json!({ "path": "n.ipynb" })).await;
    assert_eq!(
        (&value["content"], &value["extracted_document"]),
        (&json!("1|{\"not\": \"a notebook\"}"), &json!(null))
    );
    for (name, bytes) in [
        ("broken.docx", b"PK\x03\x04 nonsense".to_vec()),
        ("empty.docx", zipped(&[("other.xml", "<x/>")])),
        ("cut.xlsx", zipped(&[("xl/workbook.xml", "<workbook><sheets>")])),
    ] {
        bench.write(name, bytes);
        let error = bench.error("read_file", json!({ "path": name })).await;
        assert!(error.contains("binary file by its name"), "{error}");
    }
}

#[tokio::test]
async fn a_document_that_unpacks_to_very_much_is_cut() {
    let bench = Bench::new();
    let paragraph = format!("<w:p><w:t>{}</w:t></w:p>", "x".repeat(1000));
    let document = format!("<w:document>{}</w:document>", paragraph.repeat(20_000));
    bench.write("bomb.docx", zipped(&[("word/document.xml", &document)]));
    let value = bench.json("read_file", json!({ "path": "bomb.docx", "offset": 1_000_000 })).await;
    assert!(
        value["content"].as_str().unwrap().ends_with("|[the rest of the document was left out]"),
        "{value}"
    );
}
