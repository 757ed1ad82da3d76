package main

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"reflect"
	"strconv"
	"strings"
)

// markers are the `+name=value` lines of a comment, in order.
type markers map[string][]string

func (m markers) has(name string) bool { return len(m[name]) > 0 }

func (m markers) last(name string) string {
	if values := m[name]; len(values) > 0 {
		return values[len(values)-1]
	}
	return ""
}

type sourcePackage struct {
	types     map[string]markers
	fields    map[string]map[string]markers
	constants map[string]string
	// The descriptions of types, the comments of fields, and the values of string types.
	typeDocs  map[string]string
	fieldDocs map[string]map[string][]string
	enums     map[string]enum
}

// sourceSet holds the packages whose sources were read.
type sourceSet map[string]*sourcePackage

func newSources() sourceSet { return sourceSet{} }

func (s sourceSet) markers(t reflect.Type) markers { return s.load(t.PkgPath()).types[t.Name()] }

func (s sourceSet) field(t reflect.Type, field string) markers {
	return s.load(t.PkgPath()).fields[t.Name()][field]
}

// defaultOf is the value of `+default`, as JSON; empty without one.
func (s sourceSet) defaultOf(t reflect.Type, comments markers) string {
	value := comments.last("default")
	if name, ok := strings.CutPrefix(value, "ref("); ok {
		name = strings.TrimSuffix(name, ")")
		constant, ok := s.load(t.PkgPath()).constants[name]
		if !ok {
			log.Fatalf("%s: no constant %s", t, name)
		}
		value = constant
	}
	if value != "" {
		var decoded any
		check(json.Unmarshal([]byte(value), &decoded))
		compact, err := json.Marshal(decoded)
		check(err)
		value = string(compact)
	}
	return value
}

func (s sourceSet) load(path string) *sourcePackage {
	if found := s[path]; found != nil {
		return found
	}
	found := &sourcePackage{
		types: map[string]markers{}, fields: map[string]map[string]markers{}, constants: map[string]string{},
		typeDocs: map[string]string{}, fieldDocs: map[string]map[string][]string{}, enums: map[string]enum{},
	}
	s[path] = found
	command := exec.Command("go", "list", "-f", "{{.Dir}}", path)
	command.Stderr = os.Stderr
	folder, err := command.Output()
	check(err)
	notTests := func(info fs.FileInfo) bool { return !strings.HasSuffix(info.Name(), "_test.go") }
	parsed, err := parser.ParseDir(token.NewFileSet(), strings.TrimSpace(string(folder)), notTests, parser.ParseComments)
	check(err)
	for _, files := range parsed {
		for _, file := range files.Files {
			for _, declaration := range file.Decls {
				if general, ok := declaration.(*ast.GenDecl); ok {
					found.add(general)
				}
			}
		}
	}
	return found
}

func (p *sourcePackage) add(declaration *ast.GenDecl) {
	for _, spec := range declaration.Specs {
		switch spec := spec.(type) {
		case *ast.ValueSpec:
			for i, name := range spec.Names {
				if i < len(spec.Values) {
					if literal, ok := spec.Values[i].(*ast.BasicLit); ok {
						p.constants[name.Name] = jsonLiteral(literal)
						if of, ok := spec.Type.(*ast.Ident); ok && literal.Kind == token.STRING {
							value, err := strconv.Unquote(literal.Value)
							check(err)
							doc := spec.Doc
							if doc == nil && !declaration.Lparen.IsValid() {
								doc = declaration.Doc
							}
							p.enums[of.Name] = append(p.enums[of.Name], enumValue{name.Name, value, lines(doc)})
						}
					}
				}
			}
		case *ast.TypeSpec:
			doc := spec.Doc
			if doc == nil {
				doc = declaration.Doc
			}
			p.types[spec.Name.Name] = parseMarkers(doc)
			p.typeDocs[spec.Name.Name] = description(lines(doc))
			structure, ok := spec.Type.(*ast.StructType)
			if !ok {
				continue
			}
			fields, docs := map[string]markers{}, map[string][]string{}
			for _, field := range structure.Fields.List {
				found := parseMarkers(field.Doc)
				for _, name := range field.Names {
					fields[name.Name], docs[name.Name] = found, lines(field.Doc)
				}
				if len(field.Names) == 0 {
					name := embeddedName(field.Type)
					fields[name], docs[name] = found, lines(field.Doc)
				}
			}
			p.fields[spec.Name.Name], p.fieldDocs[spec.Name.Name] = fields, docs
		}
	}
}

func jsonLiteral(literal *ast.BasicLit) string {
	if literal.Kind != token.STRING {
		return literal.Value
	}
	text, err := strconv.Unquote(literal.Value)
	check(err)
	encoded, err := json.Marshal(text)
	check(err)
	return string(encoded)
}

func embeddedName(expression ast.Expr) string {
	switch expression := expression.(type) {
	case *ast.Ident:
		return expression.Name
	case *ast.SelectorExpr:
		return expression.Sel.Name
	case *ast.StarExpr:
		return embeddedName(expression.X)
	}
	return ""
}

func parseMarkers(comment *ast.CommentGroup) markers {
	found := markers{}
	if comment == nil {
		return found
	}
	for _, line := range comment.List {
		text := strings.TrimSpace(strings.TrimPrefix(line.Text, "//"))
		if rest, ok := strings.CutPrefix(text, "+"); ok {
			name, value, _ := strings.Cut(rest, "=")
			found[name] = append(found[name], strings.TrimSpace(value))
		}
	}
	return found
}
