package main

import (
	"fmt"
	"go/ast"
	"reflect"
	"sort"
	"strings"
)

// lines are the lines of a comment.
func lines(comment *ast.CommentGroup) []string {
	text := strings.TrimRight(comment.Text(), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// description is what OpenAPI says of something with this comment. Lines of a paragraph are joined; indented ones stay
// as they are; markers, remarks to do something, and what follows `---` are for programmers only.
func description(comment []string) string {
	var out strings.Builder
	// What separates the text so far from a following word of the same paragraph.
	separator := ""
	for _, line := range comment {
		if line == "---" {
			break
		}
		line = strings.TrimRight(line, " ")
		word := strings.TrimLeft(line, " ")
		switch {
		case line == "":
			// A paragraph ends; each further empty line adds one line break, because it takes one away first.
			if strings.HasSuffix(separator, "\n") {
				separator += "\n"
			} else {
				separator = "\n\n"
			}
		case strings.HasPrefix(word, "TODO"), strings.HasPrefix(word, "+"):
		case line[0] == ' ' || line[0] == '\t':
			if strings.HasSuffix(separator, "\n") {
				separator = separator[:len(separator)-1]
			} else {
				separator = ""
			}
			out.WriteString(separator + "\n" + line)
			separator = "\n"
		default:
			out.WriteString(separator + line)
			separator = " "
		}
	}
	return strings.TrimSpace(out.String())
}

// enumValue is a constant of a string type.
type enumValue struct {
	name, value string
	comment     []string
}

// enum are the constants of a string type, by value.
type enum []enumValue

// enumOf are the values of a type that is marked as an enum; of a list or a map, those of its items.
func (s sourceSet) enumOf(t reflect.Type) enum {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.String || t.PkgPath() == "" || !s.markers(t).has("enum") {
		return nil
	}
	byValue := map[string]enumValue{}
	for _, value := range s.load(t.PkgPath()).enums[t.Name()] {
		known, ok := byValue[value.value]
		if !ok || len(strings.Join(known.comment, " ")) < len(strings.Join(value.comment, " ")) {
			byValue[value.value] = value
		}
	}
	values := enum{}
	for _, value := range byValue {
		values = append(values, value)
	}
	sort.Slice(values, func(i, j int) bool { return values[i].value < values[j].value })
	return values
}

// lines are the values as the end of a field's comment.
func (e enum) lines() []string {
	if len(e) == 0 {
		return nil
	}
	found := []string{}
	for _, value := range e {
		comment := strings.TrimSpace(strings.Join(value.comment, " "))
		comment = strings.Join(strings.Fields(strings.TrimPrefix(comment, value.name)), " ")
		found = append(found, fmt.Sprintf(" - `%q` %s", value.value, comment))
	}
	sort.Strings(found)
	return append([]string{"", "Possible enum values:"}, found...)
}
