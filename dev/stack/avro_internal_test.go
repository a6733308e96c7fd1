package stack

import "testing"

func TestCanRead(t *testing.T) {
	t.Parallel()
	record := func(fields string) string { return `{"type":"record","name":"R","fields":[` + fields + `]}` }
	for name, c := range map[string]struct {
		reader, writer string
		want           bool
	}{
		"same":                        {`"string"`, `"string"`, true},
		"promotion":                   {`"long"`, `"int"`, true},
		"narrowing":                   {`"int"`, `"long"`, false},
		"field removed":               {record(``), record(`{"name":"a","type":"int"}`), true},
		"field added":                 {record(`{"name":"a","type":"int"}`), record(``), false},
		"field added with default":    {record(`{"name":"a","type":"int","default":0}`), record(``), true},
		"field renamed by alias":      {record(`{"name":"b","type":"int","aliases":["a"]}`), record(`{"name":"a","type":"int"}`), true},
		"field of another type":       {record(`{"name":"a","type":"int"}`), record(`{"name":"a","type":"string"}`), false},
		"record renamed":              {`{"type":"record","name":"S","fields":[]}`, record(``), false},
		"record renamed by alias":     {`{"type":"record","name":"S","aliases":["R"],"fields":[]}`, record(``), true},
		"made optional":               {`["null","string"]`, `"string"`, true},
		"made mandatory":              {`"string"`, `["null","string"]`, false},
		"branch added":                {`["null","string","int"]`, `["null","string"]`, true},
		"symbol removed":              {`{"type":"enum","name":"E","symbols":["A"]}`, `{"type":"enum","name":"E","symbols":["A","B"]}`, false},
		"symbol removed, default":     {`{"type":"enum","name":"E","symbols":["A"],"default":"A"}`, `{"type":"enum","name":"E","symbols":["A","B"]}`, true},
		"symbol added":                {`{"type":"enum","name":"E","symbols":["A","B"]}`, `{"type":"enum","name":"E","symbols":["A"]}`, true},
		"fixed of another size":       {`{"type":"fixed","name":"F","size":4}`, `{"type":"fixed","name":"F","size":8}`, false},
		"items of another type":       {`{"type":"array","items":"int"}`, `{"type":"array","items":"string"}`, false},
		"values promoted":             {`{"type":"map","values":"double"}`, `{"type":"map","values":"float"}`, true},
		"logical type":                {`{"type":"long","logicalType":"timestamp-micros"}`, `"long"`, true},
		"recursive":                   {record(`{"name":"next","type":["null","R"]}`), record(`{"name":"next","type":["null","R"]}`), true},
		"recursive, broken elsewhere": {record(`{"name":"next","type":["null","R"]},{"name":"a","type":"int"}`), record(`{"name":"next","type":["null","R"]},{"name":"a","type":"string"}`), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := canRead(c.reader, c.writer); (err == nil) != c.want {
				t.Errorf("canRead = %v, want compatible: %t", err, c.want)
			}
		})
	}
}
