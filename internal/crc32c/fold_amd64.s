#include "textflag.h"

// A polynomial of degree 127 is 16 bytes, its highest powers first. FOLD makes of each that is in r
// one that is congruent to it further on, by the distance that the factors in k are for, and adds
// what is there, more. It needs t.
#define FOLD(k, more, t, r) \
	VPCLMULQDQ $0x00, k, r, t \ // the high powers
	VPCLMULQDQ $0x11, k, r, r \ // the low ones
	VPTERNLOGQ $0x96, more, t, r // r = r ^ t ^ more

// func fold(raw uint32, b []byte, by *[3]factors) uint32
//
// 256 bytes at a time are folded into Z0 to Z3. In the end these are folded into 64, and those into
// 16, of which the processor's own instruction makes the sum. The loop waits for the multiplier, of
// which it asks 16 bytes at a time and twice: it is no faster with eight registers.
TEXT ·fold(SB), NOSPLIT, $0-44
	MOVL raw+0(FP), AX
	MOVQ b_base+8(FP), SI
	MOVQ b_len+16(FP), CX
	MOVQ by+32(FP), DX

	VBROADCASTI32X4 0(DX), Z8
	VBROADCASTI32X4 16(DX), Z9
	VMOVDQU         32(DX), X10

	VMOVDQU64 0(SI), Z0
	VMOVDQU64 64(SI), Z1
	VMOVDQU64 128(SI), Z2
	VMOVDQU64 192(SI), Z3
	VMOVD     AX, X4     // and clears the rest of Z4
	VPXORQ    Z4, Z0, Z0
	JMP       next

loop:
	FOLD(Z8, 0(SI), Z4, Z0)
	FOLD(Z8, 64(SI), Z5, Z1)
	FOLD(Z8, 128(SI), Z6, Z2)
	FOLD(Z8, 192(SI), Z7, Z3)

next:
	ADDQ $256, SI
	SUBQ $256, CX
	JNE  loop

	FOLD(Z9, Z1, Z4, Z0)
	FOLD(Z9, Z2, Z4, Z0)
	FOLD(Z9, Z3, Z4, Z0)

	VEXTRACTI32X4 $1, Z0, X1
	VEXTRACTI32X4 $2, Z0, X2
	VEXTRACTI32X4 $3, Z0, X3
	FOLD(X10, X1, X4, X0)
	FOLD(X10, X2, X4, X0)
	FOLD(X10, X3, X4, X0)

	VMOVQ   X0, BX
	VPEXTRQ $1, X0, CX
	VZEROUPPER
	XORL    AX, AX
	CRC32Q  BX, AX
	CRC32Q  CX, AX
	MOVL    AX, ret+40(FP)
	RET
