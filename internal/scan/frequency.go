package scan

import "sync"

// The classes of bytes whose frequency is told apart: letters without case,
// digits together, blank, the rest of printable ASCII one by one, all others.
const (
	classDigit  = 26
	classBlank  = 27
	classPunct  = 28
	punctuation = "\t!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
	classOther  = classPunct + len(punctuation)
	classes     = classOther + 1
)

// classOf gives each byte's class.
var classOf = func() (table [256]byte) {
	for c := range table {
		table[c] = byte(classOther)
	}
	for i := range 26 {
		table['a'+i], table['A'+i] = byte(i), byte(i)
	}
	for c := '0'; c <= '9'; c++ {
		table[c] = classDigit
	}
	table[' '] = classBlank
	for i := range len(punctuation) {
		table[punctuation[i]] = byte(classPunct + i)
	}
	return table
}()

// rarest returns where in text the window starts whose grams are together the
// rarest in ordinary text. text is long enough for m.
func rarest(text string, m mesh) int {
	var few [64]uint64
	weights := few[:0]
	for i := range len(text) - m.gram + 1 {
		weights = append(weights, weight(text[i:i+m.gram]))
	}
	best, least := 0, ^uint64(0)
	for at := range len(weights) - m.stride + 1 {
		sum := uint64(0)
		for _, w := range weights[at : at+m.stride] {
			sum += w
		}
		if sum < least {
			best, least = at, sum
		}
	}
	return best
}

// weight is how often gram occurs by the tables, in units of 2^-56. Each time that
// logWords has it counts as once in 512 positions, each time that stepWords has it
// as once in 128.
func weight(gram string) uint64 {
	if len(gram) >= 3 {
		if often := common()[packFold(gram)]; often > 0 {
			return often
		}
	}
	a := classOf[gram[0]]
	halfBits := int(frequency[a] - '0')
	for i := 1; i < len(gram); i++ {
		b := classOf[gram[i]]
		halfBits += int(following[a][b] - '0')
		a = b
	}
	return 1 << max(56-halfBits/2, 0)
}

// common holds the weights of the pieces of three to five bytes of logWords and
// stepWords, packed.
var common = sync.OnceValue(func() map[uint64]uint64 {
	grams := make(map[uint64]uint64, 2*(len(logWords)+len(stepWords)))
	add := func(words string, often uint64) {
		for i := range len(words) - 5 {
			for n := 3; n <= 5; n++ {
				grams[packFold(words[i:i+n])] += often
			}
		}
	}
	add(logWords, 1<<(56-9))
	add(stepWords, 1<<(56-7))
	return grams
})

// packFold packs the bytes of a gram, letters without case, into a number.
func packFold(gram string) (x uint64) {
	for i := range len(gram) {
		x = x<<8 | uint64(gram[i]|0x20)
	}
	return x
}

// stepWords stand on the lines that trainers print for every step, which are most
// of many logs.
const stepWords = ` {'loss': 'grad_norm': 'learning_rate': 'epoch': iteration consumed samples: elapsed time per iteration (ms): throughput per GPU` +
	` learning rate: global batch size: lm loss: loss scale: grad norm: number of skipped iterations: nan iterations: , loss= it/s, loss:     `

// logWords stand on so many lines of training logs that what they are made of
// is common there, however rare it is elsewhere.
const logWords = ` loss loss: ': 'loss': grad norm: grad_norm': norm': lm loss: step step: step= steps/s iteration learning rate: learning_rate': lr: ` +
	` epoch epoch': samples consumed samples tokens tokens/s elapsed time per iteration (ms): throughput per gpu (tflop/s/gpu) batch size: number of ` +
	` nan iterations: skipped iterations: loss scale: it/s, s/it] training: world size global rank local rank rank: [rank0]: worker nccl info channel ` +
	` via p2p/ ring tree connected comm 0x cuda device gpu memory allocated reserved total capacity gib mib process info warning error debug ` +
	` logging file "/opt/ /lib/python3.11/ site-packages/torch/ /distributed/ elastic/ utils/ userwarning: warnings.warn( line in return forward( ` +
	` self. runtimeerror: valueerror: exception: traceback most recent call last): saving checkpoint model optimizer state dict loading tokenizer dataset ` +
	` wandb: http:// https:// from to for the and with not is of this that will can are was have has you import failed timeout `

// frequency and following say how rare each class is: in ordinary text, and
// following[a][b] for b after a. A cell is '0' plus -2*log2 of the probability.
// They were counted by TestCountFrequencies over Debian's /usr/share/doc, the
// Python 3.11 library, and training and NCCL logs, each a fair share.
const frequency = "9=;;8===:B@:<::;D::9<?@@?C66HH?BIEJ?@@BE=<<<<F?>>MJ?D?F<CF>FO9"

var following = [classes]string{
	"E;98B=9H:H@786K;K786==B@<H;9UWBXUVLEHDKSDA=@>LIG>VMIIDO<HWTMXB",
	"6A=<6:DH9;A6BC8@L:8@7AK@;D9:RUBWPOQ@FAFM??9:AIGGESJGJJV<DPSNX?",
	"7B8@7@H6<E86BF5=H<>8:AFA?K;=CRDRQQPCDBBFCA@>@AF@PRLJJKX?FUTPX<",
	"7@@<4@BD6HH>CB9BH>=<;CED?K;6KI>HOGPA?@FI?=<?>GC=>HLGF@T:DN9IX=",
	":@:8<;@E=?D8<8A;?688D=A:@I<7OK>NQRJ???IA=<=<:FB@=NICFBX9ENMHX<",
	"6?>?:9GD7OJ9D@5AK:;;9ECB@R95SMBXRRRAC>LR<?9CCIE;NRMFGJX=DXSJX?",
	";=>C5A<87GK:A<>8O8:?:EGGCE=6NL>OPSOB@@JK@@==9HBB@NJFF?T9GR:GX?",
	"5HDE4AEG9OE:?C8:M9A69KEDBM<8PNBTQQK;@AJMA>8<?FD?ANJ@IIW;FTSFX?",
	"999;=;9HEJB9848;E;76E<E>K<C@UXGXQVQGKFKJGEDACLIM>OMQMHX@PXXQXE",
	"9HCE6FII>FAGDG95GF3B;AEEG>?>RMAXUXXBD?HG@C7@DLKFJUHFNDX@JXXNS@",
	"9>BA5C>?8HG=C>@8G:8B@><CA@87QK:NPWRA>@EJ=8:;@E@AFIFEIDS7CRRKX;",
	"6<C<6:BE7=H8>C6>D>9;;AE@=I>6SS@CQSODABHNA>9<DHDCARKJJJX;ISPLX@",
	"5:C?5>DJ9FD;:D68LA9@;D@KCH;8RQ@SQRS<DBGKBA?;<HC:BRIJLJX=IXPKL=",
	"8F89797C8G<@B97AIA88:<EI@I?7QO@UMKP>?AKOA>=>>HDB<PJHHGW<HNOJX>",
	"=;86<:?G=><:95;9P5899><BEBE8VRDUSVQFEDJPD@B@BIIHNTLKJAX?MXEPX?",
	"5G<A6>;?:N@9DD89B8988ECC:L8;PSBQQSXEADHNDA>:BGF?=MOHKBX=JRNIX;",
	"=:E:EGF>=@:?C=CBDA@=29:JF;:>UOCOLOK?CBJKA;;D8BEDNILEIIQ8JORLU?",
	"6C:=5A<F8G>@:87AB;99;?AH:H?7MO?SQTOB>@HM@>;<<GBC?NKHGGW<=TKEX?",
	";C9E6AB<9L><?B;9F@76:CBH>H=7OL>EPMQ=@=DM;<:89FA:GMJCFAX=FRFJX=",
	"8B=>6?G67MG???8;H8;9<H@C;F<7LN?SPPO??@DM><<9>FAACOLFG@X:FRGIU>",
	"98;98<;D;EB767?9O766FDG>FG=;XUGXXTVFE=QGI<EE@OKAJUMTOPXCQSTUXD",
	"6>BC3F>?4C@@>E9FAC?CACCAKE7;VRCRNOXDECMRC>>>EJED>QDDJIR7HJVPUA",
	"4@?>5EA85CB>F:8BH9:A@I>GCA;:QM@XPSIBBBKHC@>C=FAEGKJGHIW<HRKIX@",
	"9>8>9>FA6OIA;FB8QD:6E>@<?F48NO>XMBPAA?GH?:=<BFAAHNHFHCP9HPIDX>",
	"???C7C@F=NH==:;6K;98DE<JFF=5PJ:QQMMA>>EH<;7=9C>=>MGEECS:DQIGX;",
	"9FE?2CG@8LI=?<<C>>:AEE=I?>6=TPAPMRO?HBLNFGA@HLGHHOFILEW?LNORR?",
	"?@?A>@CL@JFC>FG@IEADICH?IC28PSETS@MBK@II8:8:9I?KDWP>I:U=DXBBX>",
	";=:<<<>?:FD;=;<<G<::>>>FDC73PI=?FEI<>JADS:EC?L@>AMH;CJIA@C;GQ@",
	"6A<=<=>B;GG>=??<K>5<ACB>EH993LC=9RDD<B@IR<C>>B=JIO?J@IRILCI>R@",
	"EGE@CGOJEMLJKHJGH9AIMGGMRMI:R1?HFIL<F?GRI8FBKRB6FJLCBFRRFKLRG;",
	"<?9>:>>8>DC<;<@9D<<:=@@BGF?8PK7;?BHBE<EH9B?=5C@H6IJG@BIAHEJFK9",
	":@=?>AFC?MIFB>DAKA<ABGC9OH62FEC5KLSCJKILQBIJMP<ILLLLJMPBMNRWQ<",
	"<=9;?=?><IA<===:D=::@>GEJL;<PE>?<EH<3CDNEIG@NPCPI<;PBPE;I6FNNB",
	"DFE=FHHEEGNDDBGFJ;8DGGHFEH:6UU?EHCH@@8GHHEDKHGIGNUMRIJNJLF1NQ<",
	";?9A:F9C;LF:<9;>?>?>FIEGIP?7PM@2PP9<EGIPEKFJMLJ@MJJIEPPFLMJPF:",
	">?=?9?9?>DB7>=?>C>;:?<@CDD>7SF@EEAF<B:BD7@>?5C<DCFFA8>G?BBCEG8",
	"9<:;;:@6;??<8:;;E;68?=??BD9DXG:GDCE9?6>JQADDKM<NLBG?CQO?EBMTM;",
	"NNKJLORRJWRMPOQNSLENMUPRSTM5GJ>ODMN@C9?G:F:?4:;JIEQ@@8LL>GJCT3",
	";>?:@AF@@G;@@?B@EA<:BDC@EG?4EOAJIJW@=A2J?E@>7JAEIGPGBHQBHIILK<",
	"F@=EEEJIELDFHEHGGGBFGGJ@HI44QOANFJR?D?K4C8FEJDD:KHOH@FUFKIFKR9",
	"JJGGEBJIGQPJJHNLONGHLKMPOS91UVFMKNQEMERTOJNQQOEXXRVQFNURTPTRX6",
	";=:=<=>??A?<<?>:B<;<>@>BFF39XTJOOKLGMMKAQ4JNSSLI6PVOJMXNQNRLSC",
	"<:79==?;?:A:9?=:??;@?=;CGJ39XUAUNJPDOFHOFT9EMS=SORWMBIU;KLRPX8",
	"::7:==8=8@D:;9<9C;69=<?BJH6<UTFKKIPFOICVI8A:ILJLAORQKPK>MMOTPD",
	"HGEEIGJIFLNFDFHBRHAHFJHNMN32KRGNIJVCMOGJQGM9BQBGVQOHEDSBHMTXS8",
	"=;A@@=KA=MED@<=AHB:?@CEGFGC4CI@KFHA6LENQEDDCH=:BTITOBFTNHTLBT3",
	"8<8<AFG=AFC:BDF;KF7:?BIJKK7@XAINQHTFNUXXNJN3PXDAIETPOQTQTI4XQJ",
	"DFBDE=GHDLKEF=EFLF@=FHHKGM46GQ5TEFI=DLKCMFJ@IQH3ALX<GPSFKECSI?",
	">A<@??DA?IFAA?A@H>>=A?B@IG65DQA@FH>==?IK>:>@@B4C8MNEFESEEGNIS7",
	">A@CC?GC9MBDA=G8>7BACEG=MFA6M=:B>AD8=:DD8A?C9C<<<9C<;@FBEADME5",
	":=89=;5=<@?;;=>7D::<>??A@A>8PI<DBDH<FCFGCEFLBIHCPP5GHII<H?IPP>",
	"CD?<ADIG<G@C=<CCL:<?DH8HNN1?XNB:KJO>CUIMA?HMAXENUSL:H>FG:IWXXC",
	"GCE>ADLFJUUBE4KEQ=??5EB6UH?DUM>KCH=8BBCJMHAEPQFNLEC5<CM:GGAGL:",
	"QSPQLTF@AXUP<XXNVSMSRUTRXXI1>TERORUA8=EF?KAJ;>EKGJT?EBQRJFIGV6",
	"HMFDIHIMIJKIJIJHMJIIKLNJLMCATLCJGINADIMNIFHFHJIEJKKAAI0IOGGJH:",
	"9:98::<=;E?:78<6A889=><BHB8?XN>SMKXC?EHQDICDGLMKWMIIKFX9KMRIWB",
	"==<===CAABEB4>@>G?==@B@HJG88WPDKGIP>FAIN>@4CAHBJLOICH6PC9HOSI;",
	">>=A?<DB>KB@?=?;H@:?BBAHHD=9G>9Q@GP2DOEPJHBOBP@TTQKJGMPATGJ9T6",
	"JAFHJHIH5XPKIHHHIJIBH@NMLP72XTJTNPSFNOOXS<POQQOB5MXKDPOPWRFQT7",
	"KFJJJJKKFTQKLKMLQTFJPOTLTTI7HJ:LGJT;B8GP9B>=?><FBHCDAATCAAK;I1",
	"?DBA=CKFKKFH>@?AED=A=BKDHK<7HK;BFEF7>ABKFAA:DH<FAKKB<=EAFKAK28",
	"BA@@C@?GBLBAB?D@P@@=DBCLKE?5BMH@MROKHJ?APEHCIT<DGUL:QNUFE?CDR1",
}
