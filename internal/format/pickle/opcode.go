package pickle

import "fmt"

// An Op is one opcode of the pickle machine.
type Op byte

// The opcodes of protocols 0 to 5, as Python's Lib/pickletools.py lists them.
// Beside each: its argument, and what the machine does with its stack.
const (
	Mark           Op = '(' // remembers the height of the stack
	Stop           Op = '.' // the value is the top
	Pop            Op = '0'
	PopMark        Op = '1'
	Dup            Op = '2'
	FloatText      Op = 'F' // line
	IntText        Op = 'I' // line; 00 and 01 are False and True
	BinInt         Op = 'J' // 4 bytes, signed
	BinInt1        Op = 'K' // 1 byte
	LongText       Op = 'L' // line, may end in L
	BinInt2        Op = 'M' // 2 bytes
	None           Op = 'N'
	PersID         Op = 'P' // line: asks the application for an object
	BinPersID      Op = 'Q' // the same, id from the stack
	Reduce         Op = 'R' // calls
	StringText     Op = 'S' // line, a quoted literal
	BinString      Op = 'T' // 4 bytes signed length, bytes
	ShortBinString Op = 'U' // 1 byte length, bytes
	UnicodeText    Op = 'V' // line, raw-unicode-escape
	BinUnicode     Op = 'X' // 4 bytes length, UTF-8
	Append         Op = 'a'
	Build          Op = 'b' // calls __setstate__ or fills __dict__
	Global         Op = 'c' // 2 lines: imports module and name
	Dict           Op = 'd'
	EmptyDict      Op = '}'
	Appends        Op = 'e'
	Get            Op = 'g' // line
	BinGet         Op = 'h' // 1 byte
	Inst           Op = 'i' // 2 lines: imports and calls
	LongBinGet     Op = 'j' // 4 bytes
	List           Op = 'l'
	EmptyList      Op = ']'
	Obj            Op = 'o' // calls
	Put            Op = 'p' // line
	BinPut         Op = 'q' // 1 byte
	LongBinPut     Op = 'r' // 4 bytes
	SetItem        Op = 's'
	Tuple          Op = 't'
	EmptyTuple     Op = ')'
	SetItems       Op = 'u'
	BinFloat       Op = 'G' // 8 bytes, big-endian

	Proto   Op = 0x80 // protocol 2: 1 byte, the protocol
	NewObj  Op = 0x81 // calls
	Ext1    Op = 0x82 // 1 byte: imports by registered code
	Ext2    Op = 0x83 // 2 bytes
	Ext4    Op = 0x84 // 4 bytes
	Tuple1  Op = 0x85
	Tuple2  Op = 0x86
	Tuple3  Op = 0x87
	NewTrue Op = 0x88
	NewFals Op = 0x89
	Long1   Op = 0x8a // 1 byte length, little-endian two's complement
	Long4   Op = 0x8b // 4 bytes signed length, the same

	BinBytes      Op = 'B' // protocol 3: 4 bytes length, bytes
	ShortBinBytes Op = 'C' // 1 byte length, bytes

	ShortBinUnicode Op = 0x8c // protocol 4: 1 byte length, UTF-8
	BinUnicode8     Op = 0x8d // 8 bytes length, UTF-8
	BinBytes8       Op = 0x8e // 8 bytes length, bytes
	EmptySet        Op = 0x8f
	AddItems        Op = 0x90
	FrozenSet       Op = 0x91
	NewObjEx        Op = 0x92 // calls
	StackGlobal     Op = 0x93 // imports
	Memoize         Op = 0x94
	Frame           Op = 0x95 // 8 bytes: length of what follows; nothing depends on it

	ByteArray8     Op = 0x96 // protocol 5: 8 bytes length, bytes
	NextBuffer     Op = 0x97 // asks the application for a buffer
	ReadonlyBuffer Op = 0x98
)

// argument says how the bytes behind an opcode are laid out.
type argument uint8

const (
	invalid argument = iota
	nothing
	fixed   // size bytes, an unsigned little-endian number
	signed4 // 4 bytes, a signed little-endian number
	float8  // 8 bytes, a big-endian IEEE 754 number
	sized   // size bytes of length, then as many bytes
	line1   // to the end of the line
	line2   // two lines
)

// A layout is what stands behind an opcode.
type layout struct {
	name string
	arg  argument
	size uint8
}

// layouts is indexed by opcode.
var layouts = [256]layout{
	Mark: {"MARK", nothing, 0}, Stop: {"STOP", nothing, 0}, Pop: {"POP", nothing, 0}, PopMark: {"POP_MARK", nothing, 0}, Dup: {"DUP", nothing, 0},
	FloatText: {"FLOAT", line1, 0}, IntText: {"INT", line1, 0}, BinInt: {"BININT", signed4, 4}, BinInt1: {"BININT1", fixed, 1}, LongText: {"LONG", line1, 0},
	BinInt2: {"BININT2", fixed, 2}, None: {"NONE", nothing, 0}, PersID: {"PERSID", line1, 0}, BinPersID: {"BINPERSID", nothing, 0}, Reduce: {"REDUCE", nothing, 0},
	StringText: {"STRING", line1, 0}, BinString: {"BINSTRING", sized, 4}, ShortBinString: {"SHORT_BINSTRING", sized, 1}, UnicodeText: {"UNICODE", line1, 0},
	BinUnicode: {"BINUNICODE", sized, 4}, Append: {"APPEND", nothing, 0}, Build: {"BUILD", nothing, 0}, Global: {"GLOBAL", line2, 0}, Dict: {"DICT", nothing, 0},
	EmptyDict: {"EMPTY_DICT", nothing, 0}, Appends: {"APPENDS", nothing, 0}, Get: {"GET", line1, 0}, BinGet: {"BINGET", fixed, 1}, Inst: {"INST", line2, 0},
	LongBinGet: {"LONG_BINGET", fixed, 4}, List: {"LIST", nothing, 0}, EmptyList: {"EMPTY_LIST", nothing, 0}, Obj: {"OBJ", nothing, 0}, Put: {"PUT", line1, 0},
	BinPut: {"BINPUT", fixed, 1}, LongBinPut: {"LONG_BINPUT", fixed, 4}, SetItem: {"SETITEM", nothing, 0}, Tuple: {"TUPLE", nothing, 0}, EmptyTuple: {"EMPTY_TUPLE", nothing, 0},
	SetItems: {"SETITEMS", nothing, 0}, BinFloat: {"BINFLOAT", float8, 8},
	Proto: {"PROTO", fixed, 1}, NewObj: {"NEWOBJ", nothing, 0}, Ext1: {"EXT1", fixed, 1}, Ext2: {"EXT2", fixed, 2}, Ext4: {"EXT4", signed4, 4}, Tuple1: {"TUPLE1", nothing, 0},
	Tuple2: {"TUPLE2", nothing, 0}, Tuple3: {"TUPLE3", nothing, 0}, NewTrue: {"NEWTRUE", nothing, 0}, NewFals: {"NEWFALSE", nothing, 0}, Long1: {"LONG1", sized, 1}, Long4: {"LONG4", sized, 4},
	BinBytes: {"BINBYTES", sized, 4}, ShortBinBytes: {"SHORT_BINBYTES", sized, 1},
	ShortBinUnicode: {"SHORT_BINUNICODE", sized, 1}, BinUnicode8: {"BINUNICODE8", sized, 8}, BinBytes8: {"BINBYTES8", sized, 8}, EmptySet: {"EMPTY_SET", nothing, 0},
	AddItems: {"ADDITEMS", nothing, 0}, FrozenSet: {"FROZENSET", nothing, 0}, NewObjEx: {"NEWOBJ_EX", nothing, 0}, StackGlobal: {"STACK_GLOBAL", nothing, 0},
	Memoize: {"MEMOIZE", nothing, 0}, Frame: {"FRAME", fixed, 8},
	ByteArray8: {"BYTEARRAY8", sized, 8}, NextBuffer: {"NEXT_BUFFER", nothing, 0}, ReadonlyBuffer: {"READONLY_BUFFER", nothing, 0},
}

// String returns the name that pickletools gives the opcode.
func (o Op) String() string {
	if n := layouts[o].name; n != "" {
		return n
	}
	return fmt.Sprintf("0x%02x", byte(o))
}

// Acts reports whether the opcode would import, call, or ask the application for
// something when Python reads it.
func (o Op) Acts() bool {
	switch o {
	case Global, StackGlobal, Inst, Obj, Reduce, Build, NewObj, NewObjEx, PersID, BinPersID, Ext1, Ext2, Ext4, NextBuffer, ReadonlyBuffer:
		return true
	}
	return false
}
