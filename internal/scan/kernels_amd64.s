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
