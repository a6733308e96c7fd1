// Package filled makes values without a zero in them. A test that sends such a value through a
// codec, a mapper or a table notices each field that is lost, also one that is added later.
package filled

import (
	"fmt"
	"reflect"
	"time"
)

// New returns a value in which every field has another value than zero, and most have a value
// of their own. It panics for types that have no sample here.
func New[T any]() T {
	var v T
	Set(reflect.ValueOf(&v).Elem())
	return v
}

// Set is New for a value that can be set.
func Set(v reflect.Value) {
	n := 0
	set(v, &n)
}

// set sets a value by a number, which it counts on.
func set(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		set(v.Elem(), n)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.UnixMilli(1_790_000_000_000 + int64(*n)).UTC()))
			return
		}
		for i := range v.NumField() {
			set(v.Field(i), n)
		}
	case reflect.Array:
		for i := range v.Len() {
			set(v.Index(i), n)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte{0, byte(*n), 255}) //nolint:gosec // any byte does
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			set(v.Index(i), n)
		}
	case reflect.Map:
		// One pair: the order of several in encoded bytes would vary.
		v.Set(reflect.ValueOf(map[string]string{"case": fmt.Sprint(*n)}))
	case reflect.String:
		v.SetString(fmt.Sprintf("texte-%d-é", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8: // of an array
		v.SetUint(uint64(*n%255) + 1) //nolint:gosec // below 256
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n) * 1000)
		if v.Type() == reflect.TypeFor[time.Duration]() { // events carry milliseconds
			v.SetInt(int64(*n) * int64(time.Millisecond))
		}
	default:
		panic("no sample for " + v.Type().String())
	}
}
