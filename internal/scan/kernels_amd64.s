#include "textflag.h"

// WIDE looks the bytes at offset k up in the table of lo and hi.
#define WIDE(k, lo, hi, out) \
	VMOVDQU8 k(SI), out     \
	VPERMI2B hi, lo, out

// func teddyWide(buf *byte, blocks int, tables *wideTables, list *uint32, marks *uint64, dense uint64) (count int)
TEXT ·teddyWide(SB), NOSPLIT, $0-56
	MOVQ buf+0(FP), SI
	MOVQ blocks+8(FP), CX
	MOVQ tables+16(FP), DX
	MOVQ list+24(FP), DI
	MOVQ marks+32(FP), R9
	MOVQ dense+40(FP), R12
	MOVQ DI, R10

	// Z0..Z7: the tables. Z16: newlines. Z17: 0 to 63 in bytes. Z18: the offset of
	// the block and Z19: 64, in double words.
	VMOVDQU8     0(DX), Z0
	VMOVDQU8     64(DX), Z1
	VMOVDQU8     128(DX), Z2
	VMOVDQU8     192(DX), Z3
	VMOVDQU8     256(DX), Z4
	VMOVDQU8     320(DX), Z5
	VMOVDQU8     384(DX), Z6
	VMOVDQU8     448(DX), Z7
	MOVL         $10, AX
	VPBROADCASTB AX, Z16
	VMOVDQU8     counting<>(SB), Z17
	VPXORD       Z18, Z18, Z18
	MOVL         $64, AX
	VPBROADCASTD AX, Z19

block:
	VPCMPEQB   0(SI), Z16, K2
	WIDE(0, Z0, Z1, Z10)
	WIDE(1, Z2, Z3, Z11)
	WIDE(2, Z4, Z5, Z12)
	WIDE(3, Z6, Z7, Z13)
	VPTERNLOGD $0x80, Z11, Z12, Z10  // the and of all three
	VPTESTMB   Z13, Z10, K1
	KMOVQ      K2, (R9)
	KMOVQ      K1, AX
	MOVQ       AX, BX
	ORQ        R12, BX               // where most blocks have one, no branch
	JZ         none

	// The numbers of the positions, closed up, as double words behind the list:
	// always the first 16, and for most blocks those are all.
	VPCOMPRESSB.Z Z17, K1, Z14
	POPCNTQ       AX, AX
	VPMOVZXBD     X14, Z15
	VPADDD        Z18, Z15, Z15
	VMOVDQU32     Z15, (DI)
	CMPQ          AX, $16
	JA            many

few:
	LEAQ (DI)(AX*4), DI

none:
	VPADDD Z19, Z18, Z18
	ADDQ   $64, SI
	ADDQ   $8, R9
	DECQ   CX
	JNZ    block

	VZEROUPPER
	SUBQ R10, DI
	SHRQ $2, DI
	MOVQ DI, count+48(FP)
	RET

many:
	VEXTRACTI32X4 $1, Z14, X15
	VPMOVZXBD     X15, Z15
	VPADDD        Z18, Z15, Z15
	VMOVDQU32     Z15, 64(DI)
	VEXTRACTI32X4 $2, Z14, X15
	VPMOVZXBD     X15, Z15
	VPADDD        Z18, Z15, Z15
	VMOVDQU32     Z15, 128(DI)
	VEXTRACTI32X4 $3, Z14, X15
	VPMOVZXBD     X15, Z15
	VPADDD        Z18, Z15, Z15
	VMOVDQU32     Z15, 192(DI)
	JMP           few

// func siftWide(buf *byte, list *uint32, n int, set *gramSet) (count int)
TEXT ·siftWide(SB), NOSPLIT, $0-40
	MOVQ buf+0(FP), SI
	MOVQ list+8(FP), R8
	MOVQ n+16(FP), CX
	MOVQ set+24(FP), DX
	MOVQ R8, DI
	MOVQ R8, R10

	MOVL         $0x9E3779B1, AX
	VPBROADCASTD AX, Z2
	MOVL         $1, AX
	VPBROADCASTD AX, Z4
	KXNORW       K4, K4, K4          // the lanes in use

sixteen:
	CMPQ CX, $16
	JGE  full
	TESTQ CX, CX
	JLE  end
	MOVL $1, AX
	SHLL CX, AX
	DECL AX
	KMOVW AX, K4

full:
	VMOVDQU32.Z (R8), K4, Z5
	KMOVW       K4, K1
	VPXORD      Z6, Z6, Z6           // no wait for the gather before
	VPGATHERDD  (SI)(Z5*1), K1, Z6
	VPMULLD     Z2, Z6, Z6
	VPSRLD      $16, Z6, Z6          // the hash
	VPSRLD      $5, Z6, Z7           // its word of the set
	KMOVW       K4, K1
	VPXORD      Z8, Z8, Z8
	VPGATHERDD  (DX)(Z7*4), K1, Z8
	VPRORVD     Z6, Z8, Z8           // its bit to the bottom
	VPTESTMD    Z4, Z8, K4, K2
	VPCOMPRESSD Z5, K2, Z9
	VMOVDQU32   Z9, (DI)
	KMOVW       K2, BX
	POPCNTL     BX, BX
	LEAQ        (DI)(BX*4), DI
	ADDQ        $64, R8
	SUBQ        $16, CX
	JMP         sixteen

end:
	VZEROUPPER
	SUBQ R10, DI
	SHRQ $2, DI
	MOVQ DI, count+32(FP)
	RET

// func halve(buf *byte, blocks int, high *byte, marks *uint64)
TEXT ·halve(SB), NOSPLIT, $0-32
	MOVQ buf+0(FP), SI
	MOVQ blocks+8(FP), CX
	MOVQ high+16(FP), DI
	MOVQ marks+24(FP), R9

	// Y8: the low half of each byte. Y9: newlines.
	MOVL         $15, AX
	VMOVD        AX, X8
	VPBROADCASTB X8, Y8
	MOVL         $10, AX
	VMOVD        AX, X9
	VPBROADCASTB X9, Y9

block:
	VMOVDQU   0(SI), Y0
	VMOVDQU   32(SI), Y1
	VPCMPEQB  Y9, Y0, Y2
	VPCMPEQB  Y9, Y1, Y3
	VPMOVMSKB Y2, AX
	VPMOVMSKB Y3, BX
	VPSRLW    $4, Y0, Y0
	VPSRLW    $4, Y1, Y1
	VPAND     Y8, Y0, Y0
	VPAND     Y8, Y1, Y1
	VMOVDQU   Y0, 0(DI)
	VMOVDQU   Y1, 32(DI)
	SHLQ      $32, BX
	ORQ       BX, AX
	MOVQ      AX, (R9)
	ADDQ      $64, SI
	ADDQ      $64, DI
	ADDQ      $8, R9
	DECQ      CX
	JNZ       block

	// The five bytes behind, with those before them.
	VMOVDQU -27(SI), Y0
	VPSRLW  $4, Y0, Y0
	VPAND   Y8, Y0, Y0
	VMOVDQU Y0, -27(DI)
	VZEROUPPER
	RET

// LIST puts the lowest position of the set AX in the block at R11 into the list,
// and takes it out of the set.
#define LIST(k) \
	TZCNTQ AX, BX        \
	ADDL   R11, BX       \
	MOVL   BX, (4*k)(DI) \
	BLSRQ  AX, AX

// FIRST and NIBBLE or the look-ups of the bytes at offset k in the tables lo and
// hi into acc.
#define FIRST(k, lo, hi, acc) \
	VPSHUFB k(SI), lo, acc  \
	VPSHUFB k(R8), hi, Y14  \
	VPOR    Y14, acc, acc

#define NIBBLE(k, lo, hi, acc) \
	VPSHUFB k(SI), lo, Y13 \
	VPSHUFB k(R8), hi, Y14 \
	VPOR    Y13, acc, acc  \
	VPOR    Y14, acc, acc

// func teddyNibble(buf *byte, blocks int, tables *nibbleTables, high *byte, list *uint32, base int, dense uint64) (count int)
TEXT ·teddyNibble(SB), NOSPLIT, $0-64
	MOVQ buf+0(FP), SI
	MOVQ blocks+8(FP), CX
	MOVQ tables+16(FP), DX
	MOVQ high+24(FP), R8
	MOVQ list+32(FP), DI
	MOVQ base+40(FP), R11
	MOVQ dense+48(FP), R12
	MOVQ DI, R10

	// Y0..Y11: the tables, each in both lanes. Y15: ones. R11: the offset of the
	// block.
	VBROADCASTI128 0(DX), Y0
	VBROADCASTI128 16(DX), Y1
	VBROADCASTI128 32(DX), Y2
	VBROADCASTI128 48(DX), Y3
	VBROADCASTI128 64(DX), Y4
	VBROADCASTI128 80(DX), Y5
	VBROADCASTI128 96(DX), Y6
	VBROADCASTI128 112(DX), Y7
	VBROADCASTI128 128(DX), Y8
	VBROADCASTI128 144(DX), Y9
	VBROADCASTI128 160(DX), Y10
	VBROADCASTI128 176(DX), Y11
	VPCMPEQB       Y15, Y15, Y15

block:
	// VPSHUFB reads zero for a byte with the highest bit set: no bucket is left out.
	FIRST(0, Y0, Y1, Y12)
	NIBBLE(1, Y2, Y3, Y12)
	NIBBLE(2, Y4, Y5, Y12)
	NIBBLE(3, Y6, Y7, Y12)
	NIBBLE(4, Y8, Y9, Y12)
	NIBBLE(5, Y10, Y11, Y12)
	VPCMPEQB  Y15, Y12, Y12
	VPMOVMSKB Y12, AX
	FIRST(32, Y0, Y1, Y12)
	NIBBLE(33, Y2, Y3, Y12)
	NIBBLE(34, Y4, Y5, Y12)
	NIBBLE(35, Y6, Y7, Y12)
	NIBBLE(36, Y8, Y9, Y12)
	NIBBLE(37, Y10, Y11, Y12)
	VPCMPEQB  Y15, Y12, Y12
	VPMOVMSKB Y12, BX
	SHLQ      $32, BX
	ORQ       BX, AX
	NOTQ      AX                     // the positions with a bucket left
	MOVQ      AX, BX
	ORQ       R12, BX                // where most blocks have one, no branch
	JZ        none
	POPCNTQ   AX, R9
	LIST(0)
	LIST(1)
	LIST(2)
	LIST(3)
	CMPQ      R9, $4
	JA        many

few:
	LEAQ (DI)(R9*4), DI

none:
	ADDL $64, R11
	ADDQ $64, SI
	ADDQ $64, R8
	DECQ CX
	JNZ  block

	VZEROUPPER
	SUBQ R10, DI
	SHRQ $2, DI
	MOVQ DI, count+56(FP)
	RET

many:
	LEAQ 16(DI), DX

more:
	TZCNTQ AX, BX
	ADDL   R11, BX
	MOVL   BX, (DX)
	ADDQ   $4, DX
	BLSRQ  AX, AX
	JNZ    more
	JMP    few

DATA counting<>+0(SB)/8, $0x0706050403020100
DATA counting<>+8(SB)/8, $0x0f0e0d0c0b0a0908
DATA counting<>+16(SB)/8, $0x1716151413121110
DATA counting<>+24(SB)/8, $0x1f1e1d1c1b1a1918
DATA counting<>+32(SB)/8, $0x2726252423222120
DATA counting<>+40(SB)/8, $0x2f2e2d2c2b2a2928
DATA counting<>+48(SB)/8, $0x3736353433323130
DATA counting<>+56(SB)/8, $0x3f3e3d3c3b3a3938
GLOBL counting<>(SB), RODATA|NOPTR, $64
