#include "go_asm.h" // const_…: the constants of sum.go
#include "textflag.h"

// A polynomial of degree 127 is 16 bytes, its highest powers first. FOLD makes of each that is in r
// one that is congruent to it further on, by the distance that the factors in k are for, and adds
// what is there, more. It needs t.
#define FOLD(k, more, t, r) \
	VPCLMULQDQ $0x00, k, r, t \ // the high powers
	VPCLMULQDQ $0x11, k, r, r \ // the low ones
	VPTERNLOGQ $0x96, more, t, r // r = r ^ t ^ more

// REDUCE makes 16 bytes of the 256 in Z0 to Z3, and of these their sum, in AX.
#define REDUCE \
	FOLD(Z9, Z1, Z4, Z0) \
	FOLD(Z9, Z2, Z4, Z0) \
	FOLD(Z9, Z3, Z4, Z0) \
	VEXTRACTI32X4 $1, Z0, X1 \
	VEXTRACTI32X4 $2, Z0, X2 \
	VEXTRACTI32X4 $3, Z0, X3 \
	FOLD(X10, X1, X4, X0) \
	FOLD(X10, X2, X4, X0) \
	FOLD(X10, X3, X4, X0) \
	VMOVQ   X0, BX \
	VPEXTRQ $1, X0, R11 \
	XORL    AX, AX \
	CRC32Q  BX, AX \
	CRC32Q  R11, AX

// FACTORS loads those at DX.
#define FACTORS \
	VBROADCASTI32X4 0(DX), Z8 \
	VBROADCASTI32X4 16(DX), Z9 \
	VMOVDQU         32(DX), X10

// START loads the first 256 bytes at SI, with the sum in AX before them.
#define START \
	VMOVDQU64 0(SI), Z0 \
	VMOVDQU64 64(SI), Z1 \
	VMOVDQU64 128(SI), Z2 \
	VMOVDQU64 192(SI), Z3 \
	VMOVD     AX, X4 \ // and clears the rest of Z4
	VPXORQ    Z4, Z0, Z0

// func fold(raw uint32, b []byte, by *[3]factors) uint32
//
// 256 bytes at a time are folded into Z0 to Z3, those into 16 in the end.
TEXT ·fold(SB), NOSPLIT, $0-44
	MOVL raw+0(FP), AX
	MOVQ b_base+8(FP), SI
	MOVQ b_len+16(FP), CX
	MOVQ by+32(FP), DX
	FACTORS
	START
	JMP  next

loop:
	FOLD(Z8, 0(SI), Z4, Z0)
	FOLD(Z8, 64(SI), Z5, Z1)
	FOLD(Z8, 128(SI), Z6, Z2)
	FOLD(Z8, 192(SI), Z7, Z3)

next:
	ADDQ $256, SI
	SUBQ $256, CX
	JNE  loop

	REDUCE
	VZEROUPPER
	MOVL AX, ret+40(FP)
	RET

// THREE goes on with the sums of three runs by 8 bytes each.
#define THREE(at) \
	CRC32Q at(DI), R8 \
	CRC32Q (at+const_run)(DI), R9 \
	CRC32Q (at+2*const_run)(DI), R10

// func weave(raw uint32, b []byte, by *[3]factors, after *[3]uint64) uint32
//
// What fold waits for is the multiplier, which the instruction for 8 bytes does not need. So here
// that one sums up three runs, since it takes three cycles, while what is before them in the block
// is folded. In the end the sum of what is folded, and those of the first two runs, are moved on to
// the block's end by the factors in after, and added to the third's.
TEXT ·weave(SB), NOSPLIT, $0-52
	MOVL raw+0(FP), AX
	MOVQ b_base+8(FP), SI
	MOVQ b_len+16(FP), CX
	MOVQ by+32(FP), DX
	FACTORS
	MOVQ after+40(FP), DX

block:
	LEAQ ((const_turns+1)*const_least)(SI), DI
	START
	XORL R8, R8
	XORL R9, R9
	XORL R10, R10
	MOVL $const_turns, BX

both:
	ADDQ $256, SI
	FOLD(Z8, 0(SI), Z4, Z0)
	THREE(0)
	FOLD(Z8, 64(SI), Z5, Z1)
	THREE(8)
	FOLD(Z8, 128(SI), Z6, Z2)
	THREE(16)
	FOLD(Z8, 192(SI), Z7, Z3)
	THREE(24)
	THREE(32)
	ADDQ $40, DI
	DECL BX
	JNE  both

	REDUCE
	VMOVD      AX, X0
	VMOVD      R8, X1
	VMOVD      R9, X2
	VMOVQ      0(DX), X4
	VMOVQ      8(DX), X5
	VMOVQ      16(DX), X6
	VPCLMULQDQ $0x00, X4, X0, X0
	VPCLMULQDQ $0x00, X5, X1, X1
	VPCLMULQDQ $0x00, X6, X2, X2
	VPTERNLOGQ $0x96, X1, X2, X0
	VMOVQ      X0, BX
	XORL       AX, AX
	CRC32Q     BX, AX
	XORL       R10, AX

	LEAQ (2*const_run)(DI), SI
	SUBQ $const_block, CX
	JNE  block

	VZEROUPPER
	MOVL AX, ret+48(FP)
	RET
