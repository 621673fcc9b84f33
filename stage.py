"""stage.py FILE ANCHOR_LINE < NEW_TEXT : insert text after anchor (exact substring) in the index's version of FILE."""
import subprocess,sys
f,anchor=sys.argv[1],sys.argv[2]
new=sys.stdin.read()
cur=subprocess.run(["git","show",f":{f}"],capture_output=True,text=True,check=True).stdout
assert anchor in cur,(f,anchor)
if new in cur: sys.exit()
i=cur.index(anchor)+len(anchor)
out=cur[:i]+new+cur[i:]
h=subprocess.run(["git","hash-object","-w","--stdin"],input=out,capture_output=True,text=True,check=True).stdout.strip()
subprocess.run(["git","update-index","--cacheinfo",f"100644,{h},{f}"],check=True)
