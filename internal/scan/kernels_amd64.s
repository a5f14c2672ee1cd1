#include "textflag.h"

// BYTE ands the two look-ups of the window's byte at offset k into acc, from the
// tables lo and hi.
#define BYTE(k, lo, hi, acc) \
	VMOVDQU k(SI)(AX*1), Y10 \
	VPSRLW  $4, Y10, Y11     \
	VPAND   Y8, Y10, Y10     \
	VPAND   Y8, Y11, Y11     \
	VPSHUFB Y10, lo, Y10     \
	VPSHUFB Y11, hi, Y11     \
	VPAND   Y10, acc, acc    \
	VPAND   Y11, acc, acc

// func teddyFind(buf []byte, tables *teddyTables) (n int, set uint32)
TEXT ·teddyFind(SB), NOSPLIT, $0-44
	MOVQ buf_base+0(FP), SI
	MOVQ buf_len+8(FP), CX
	MOVQ tables+24(FP), DX

	// Y0..Y7: the tables, each in both lanes. Y8: the low half of each byte. Y9: zero.
	VBROADCASTI128 0(DX), Y0
	VBROADCASTI128 16(DX), Y1
	VBROADCASTI128 32(DX), Y2
	VBROADCASTI128 48(DX), Y3
	VBROADCASTI128 64(DX), Y4
	VBROADCASTI128 80(DX), Y5
	VBROADCASTI128 96(DX), Y6
	VBROADCASTI128 112(DX), Y7
	MOVL           $15, AX
	VMOVD          AX, X8
	VPBROADCASTB   X8, Y8
	VPXOR          Y9, Y9, Y9

	XORL AX, AX
	XORL BX, BX
	SUBQ $35, CX

loop:
	CMPQ      AX, CX
	JGT       done
	VPCMPEQB  Y12, Y12, Y12
	BYTE(0, Y0, Y1, Y12)
	BYTE(1, Y2, Y3, Y12)
	BYTE(2, Y4, Y5, Y12)
	BYTE(3, Y6, Y7, Y12)
	VPCMPEQB  Y9, Y12, Y12
	VPMOVMSKB Y12, BX
	XORL      $-1, BX
	JNZ       done
	ADDQ      $32, AX
	JMP       loop

done:
	VZEROUPPER
	MOVQ AX, n+32(FP)
	MOVL BX, set+40(FP)
	RET

// func sieveFind(buf []byte, bits *bitmap, mask uint64) (n int, set uint32)
TEXT ·sieveFind(SB), NOSPLIT, $0-52
	MOVQ buf_base+0(FP), SI
	MOVQ buf_len+8(FP), CX
	MOVQ bits+24(FP), DX
	MOVQ mask+32(FP), R8

	// Y0, Y1: the mask for bytes 0..3 and 1..4 of a gram. Y2, Y3: the factors of
	// hash. Y4: 31 in each lane.
	VMOVQ        R8, X0
	VPBROADCASTD X0, Y0
	SHRQ         $8, R8
	VMOVQ        R8, X1
	VPBROADCASTD X1, Y1
	MOVL         $0x9E3779B1, AX
	VMOVD        AX, X2
	VPBROADCASTD X2, Y2
	MOVL         $0x85EBCA77, AX
	VMOVD        AX, X3
	VPBROADCASTD X3, Y3
	MOVL         $31, AX
	VMOVD        AX, X4
	VPBROADCASTD X4, Y4

	XORL AX, AX
	XORL BX, BX
	SUBQ $40, CX

next:
	CMPQ       AX, CX
	JGT        end
	VPOR       0(SI)(AX*1), Y0, Y5
	VPOR       1(SI)(AX*1), Y1, Y6
	VPMULLD    Y2, Y5, Y5
	VPMULLD    Y3, Y6, Y6
	VPADDD     Y5, Y6, Y5
	VPSRLD     $14, Y5, Y5           // the hash
	VPSRLD     $5, Y5, Y6            // its word of the bitmap
	VPCMPEQD   Y7, Y7, Y7
	VPGATHERDD Y7, (DX)(Y6*4), Y8
	VPANDN     Y4, Y5, Y5            // 31 - hash%32
	VPSLLVD    Y5, Y8, Y8            // its bit to the top
	VMOVMSKPS  Y8, BX
	TESTL      BX, BX
	JNZ        end
	ADDQ       $32, AX
	JMP        next

end:
	VZEROUPPER
	MOVQ AX, n+40(FP)
	MOVL BX, set+48(FP)
	RET

// func sieveList(buf *byte, blocks int, bits *bitmap, mask uint64, list *[2064]uint32) (count int)
TEXT ·sieveList(SB), NOSPLIT, $0-48
	MOVQ buf+0(FP), SI
	MOVQ blocks+8(FP), CX
	MOVQ bits+16(FP), DX
	MOVQ mask+24(FP), R8
	MOVQ list+32(FP), DI
	MOVQ DI, R9

	// Z0..Z3 as Y0..Y3 in sieveFind. Z4: 1 in each lane. Z9: the 16 offsets.
	VPBROADCASTD R8, Z0
	SHRQ         $8, R8
	VPBROADCASTD R8, Z1
	MOVL         $0x9E3779B1, AX
	VPBROADCASTD AX, Z2
	MOVL         $0x85EBCA77, AX
	VPBROADCASTD AX, Z3
	MOVL         $1, AX
	VPBROADCASTD AX, Z4
	VMOVDQU32    offsets<>(SB), Z9
	MOVL         $64, AX
	VPBROADCASTD AX, Z10

sixteen:
	VPORD       0(SI), Z0, Z5
	VPORD       1(SI), Z1, Z6
	VPMULLD     Z2, Z5, Z5
	VPMULLD     Z3, Z6, Z6
	VPADDD      Z5, Z6, Z5
	VPSRLD      $14, Z5, Z5          // the hash
	VPSRLD      $5, Z5, Z6           // its word of the bitmap
	KXNORW      K1, K1, K1
	VPXORD      Z8, Z8, Z8           // no wait for the gather before
	VPGATHERDD  (DX)(Z6*4), K1, Z8
	VPRORVD     Z5, Z8, Z8           // its bit to the bottom
	VPTESTMD    Z4, Z8, K2
	VPCOMPRESSD Z9, K2, Z11
	VMOVDQU32   Z11, (DI)
	KMOVW       K2, BX
	POPCNTL     BX, BX
	LEAQ        (DI)(BX*4), DI
	VPADDD      Z10, Z9, Z9
	ADDQ        $64, SI
	DECQ        CX
	JNZ         sixteen

	VZEROUPPER
	SUBQ R9, DI
	SHRQ $2, DI
	MOVQ DI, count+40(FP)
	RET

// PERMUTE ands the look-up of the window's byte at offset k into acc, from the
// table in lo and hi.
#define PERMUTE(k, lo, hi, acc) \
	VMOVDQU8 k(SI), Z10         \
	VPERMI2B hi, lo, Z10        \
	VPANDD   Z10, acc, acc

// func teddyList(buf *byte, blocks int, tables *wideTables, sets *[128]uint64)
TEXT ·teddyList(SB), NOSPLIT, $0-32
	MOVQ buf+0(FP), SI
	MOVQ blocks+8(FP), CX
	MOVQ tables+16(FP), DX
	MOVQ sets+24(FP), DI

	VMOVDQU8 0(DX), Z0
	VMOVDQU8 64(DX), Z1
	VMOVDQU8 128(DX), Z2
	VMOVDQU8 192(DX), Z3
	VMOVDQU8 256(DX), Z4
	VMOVDQU8 320(DX), Z5
	VMOVDQU8 384(DX), Z6
	VMOVDQU8 448(DX), Z7

each:
	VMOVDQU8 0(SI), Z8
	VPERMI2B Z1, Z0, Z8
	PERMUTE(1, Z2, Z3, Z8)
	PERMUTE(2, Z4, Z5, Z8)
	PERMUTE(3, Z6, Z7, Z8)
	VPTESTMB Z8, Z8, K1
	KMOVQ    K1, (DI)
	ADDQ     $64, SI
	ADDQ     $8, DI
	DECQ     CX
	JNZ      each

	VZEROUPPER
	RET

DATA offsets<>+0(SB)/8, $0x0000000400000000
DATA offsets<>+8(SB)/8, $0x0000000c00000008
DATA offsets<>+16(SB)/8, $0x0000001400000010
DATA offsets<>+24(SB)/8, $0x0000001c00000018
DATA offsets<>+32(SB)/8, $0x0000002400000020
DATA offsets<>+40(SB)/8, $0x0000002c00000028
DATA offsets<>+48(SB)/8, $0x0000003400000030
DATA offsets<>+56(SB)/8, $0x0000003c00000038
GLOBL offsets<>(SB), RODATA|NOPTR, $64
