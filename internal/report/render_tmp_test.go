package report
import ("testing";"os";"fmt";"bytes")
func TestTmpShow(t *testing.T){
 dir:=os.Getenv("SHOW"); if dir=="" {t.Skip()}
 for _,s:=range samples { inc:=load(t,s.name)
  for _,who:=range []string{"engineer","on-call","executive"} { for _,f:=range Formats(){ for _,w:=range []int{60,100,200}{
   var b bytes.Buffer
   if err:=Write(&b,f,inc,Options{Width:w,For:who});err!=nil{t.Error(s.name,f,err);continue}
   os.WriteFile(fmt.Sprintf("%s/%s.%s.%d.%s",dir,s.name,who,w,f),b.Bytes(),0o666)
 }}}}}
