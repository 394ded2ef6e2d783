;; The guest's one way out, its meter, and an operating system of constants.
;;
;; host.call is all that leaves the sandbox. What CPython would ask of an operating system is answered here: the clock
;; stands at 0, entropy is 0x2a, and there is no file, no environment and no other process.
;;
;; Memory of this library, from its base (offsets are repeated in machine.py):
;;        0  address of the last answer
;;        4  the function that answers requests
;;       32  the name of every built-in function here
;;       64  request, up to 65,536 bytes
;;   65,600  answer of the host, up to 65,536 bytes
;;  131,200  meter: used, ceiling, deepest, depth (i64 each), then the two functions that end a frame (i32 each)
;;  131,328  definitions of the built-in functions, 16 bytes each
(module
 (import "env" "memory" (memory 1))
 (import "env" "__memory_base" (global $base i32))
 (import "env" "__table_base" (global $table i32))
 (import "GOT.mem" "errno" (global $errno (mut i32)))
 (import "GOT.mem" "_Py_NoneStruct" (global $none (mut i32)))
 (import "env" "__indirect_function_table" (table 0 funcref))
 (import "env" "PyBytes_AsString" (func $octets (param i32) (result i32)))
 (import "env" "PyBytes_Size" (func $size (param i32) (result i32)))
 (import "env" "PyBytes_FromStringAndSize" (func $bytes (param i32 i32) (result i32)))
 (import "env" "PyObject_CallOneArg" (func $call_one (param i32 i32) (result i32)))
 (import "env" "PyObject_CallNoArgs" (func $call_none (param i32) (result i32)))
 (import "env" "PyCMethod_New" (func $new_method (param i32 i32 i32 i32) (result i32)))
 (import "env" "PyLong_AsLongLong" (func $integer (param i32) (result i64)))
 (import "env" "PyLong_FromLongLong" (func $new_integer (param i64) (result i32)))
 (import "env" "PyErr_Occurred" (func $error (result i32)))
 (import "env" "PyErr_Clear" (func $forget_error))
 (import "env" "Py_IncRef" (func $keep (param i32)))
 (import "env" "malloc" (func $malloc (param i32) (result i32)))
 (import "env" "free" (func $free (param i32)))
 ;; The second argument is the request's size. If it is -1, the last answer is copied to the first.
 (import "host" "call" (func $host_call (param i32 i32) (result i32)))

 ;; 0: host_call(request) -> answer. Up to 65,536 bytes, the answer lies in its buffer already.
 (func $ask (param $self i32) (param $request i32) (result i32)
  (local $at i32) (local $n i32) (local $answer i32)
  (local.set $at (call $octets (local.get $request)))
  (if (i32.eqz (local.get $at)) (then (return (i32.const 0))))
  (local.set $n (call $host_call (local.get $at) (call $size (local.get $request))))
  (if (i32.le_u (local.get $n) (i32.const 65536)) (then
   (return (call $bytes (i32.add (global.get $base) (i32.const 65600)) (local.get $n)))))
  (local.set $answer (call $bytes (i32.const 0) (local.get $n)))
  (if (i32.eqz (local.get $answer)) (then (return (i32.const 0))))
  (drop (call $host_call (call $octets (local.get $answer)) (i32.const -1)))
  (local.get $answer))

 ;; The instruments of trailboss.metering.gauge that programs call most.
 (func $meter (result i32) (i32.add (global.get $base) (i32.const 131200)))
 (func $amount (param $number i32) (result i64)  ;; the largest number for what does not fit
  (local $amount i64)
  (local.set $amount (call $integer (local.get $number)))
  (if (i64.eq (local.get $amount) (i64.const -1)) (then
   (if (call $error) (then (call $forget_error) (return (i64.const 0x7fffffffffffffff))))))
  (local.get $amount))
 (func $spend (param $number i32) (result i32)  ;; returns whether the frame has ended
  (local $meter i32) (local $used i64)
  (local.set $meter (call $meter))
  (local.set $used (i64.add (i64.load (local.get $meter)) (call $amount (local.get $number))))
  (if (i64.lt_s (local.get $used) (i64.load (local.get $meter))) (then
   (local.set $used (i64.const 0x7fffffffffffffff))))
  (i64.store (local.get $meter) (local.get $used))
  (if (i64.gt_s (local.get $used) (i64.load offset=8 (local.get $meter))) (then
   (drop (call $call_none (i32.load offset=32 (local.get $meter))))
   (return (i32.const 1))))
  (i32.const 0))
 (func $charge (param $self i32) (param $cycles i32) (result i32)  ;; 1
  (if (call $spend (local.get $cycles)) (then (return (i32.const 0))))
  (global.get $none))
 (func $turn (param $self i32) (param $arguments i32) (param $count i32) (result i32)  ;; 2
  (i64.store offset=24 (call $meter)
   (i64.add (i64.const 1) (call $integer (i32.load offset=4 (local.get $arguments)))))
  (if (call $spend (i32.load (local.get $arguments))) (then (return (i32.const 0))))
  (global.get $none))
 (func $enter (param $self i32) (param $cycles i32) (result i32)  ;; 3
  (local $meter i32) (local $here i64)
  (if (call $spend (local.get $cycles)) (then (return (i32.const 0))))
  (local.set $meter (call $meter))
  (local.set $here (i64.load offset=24 (local.get $meter)))
  (if (i64.ge_s (local.get $here) (i64.load offset=16 (local.get $meter))) (then
   (drop (call $call_none (i32.load offset=36 (local.get $meter))))
   (return (i32.const 0))))
  (i64.store offset=24 (local.get $meter) (i64.add (local.get $here) (i64.const 1)))
  (call $new_integer (local.get $here)))
 (func $leave (param $self i32) (param $here i32) (result i32)  ;; 4
  (i64.store offset=24 (call $meter) (call $integer (local.get $here)))
  (global.get $none))
 (func $result (param $self i32) (param $arguments i32) (param $count i32) (result i32)  ;; 5
  (i64.store offset=24 (call $meter) (call $integer (i32.load (local.get $arguments))))
  (call $keep (i32.load offset=4 (local.get $arguments)))
  (i32.load offset=4 (local.get $arguments)))
 ;; 6, 7: read and write a number of the meter, by its offset; 8: set the two functions that end a frame.
 (func $read (param $self i32) (param $offset i32) (result i32)
  (call $new_integer (i64.load (i32.add (call $meter) (i32.wrap_i64 (call $integer (local.get $offset)))))))
 (func $write (param $self i32) (param $arguments i32) (param $count i32) (result i32)
  (i64.store (i32.add (call $meter) (i32.wrap_i64 (call $integer (i32.load (local.get $arguments)))))
   (call $amount (i32.load offset=4 (local.get $arguments))))
  (global.get $none))
 (func $ends (param $self i32) (param $arguments i32) (param $count i32) (result i32)
  (call $keep (i32.load (local.get $arguments)))
  (call $keep (i32.load offset=4 (local.get $arguments)))
  (i32.store offset=32 (call $meter) (i32.load (local.get $arguments)))
  (i32.store offset=36 (call $meter) (i32.load offset=4 (local.get $arguments)))
  (global.get $none))
 (elem (global.get $table) $ask $charge $turn $enter $leave $result $read $write $ends)

 ;; For the builder: this library's base, a built-in function by its number, the function that answers requests.
 (func (export "glue_base") (result i32) (global.get $base))
 (func (export "glue_function") (param $number i32) (param $flags i32) (result i32)
  (local $definition i32)
  (local.set $definition
   (i32.add (i32.add (global.get $base) (i32.const 131328)) (i32.mul (local.get $number) (i32.const 16))))
  (memory.fill (i32.add (global.get $base) (i32.const 32)) (i32.const 0x66) (i32.const 1))
  (i32.store (local.get $definition) (i32.add (global.get $base) (i32.const 32)))
  (i32.store offset=4 (local.get $definition) (i32.add (global.get $table) (local.get $number)))
  (i32.store offset=8 (local.get $definition) (local.get $flags))
  (call $new_method (local.get $definition) (i32.const 0) (i32.const 0) (i32.const 0)))
 (func (export "glue_handler") (param $handler i32)
  (i32.store offset=4 (global.get $base) (local.get $handler)))
 ;; A request of this size lies in its buffer. Returns the size of the answer, -1 without one.
 (func (export "run") (param $n i32) (result i32)
  (local $answer i32)
  (local.set $answer (call $call_one (i32.load offset=4 (global.get $base))
   (call $bytes (i32.add (global.get $base) (i32.const 64)) (local.get $n))))
  (if (i32.eqz (local.get $answer)) (then (return (i32.const -1))))
  (i32.store (global.get $base) (call $octets (local.get $answer)))
  (call $size (local.get $answer)))

 ;; Take blocks of a size until a row of them is so many bytes long, and give that row back. A block has 4 bytes more.
 (func (export "glue_fill") (param $size i32) (param $bytes i32)
  (local $at i32) (local $first i32) (local $end i32)
  (loop $next
   (local.set $at (call $malloc (i32.sub (local.get $size) (i32.const 4))))
   (if (i32.eqz (local.get $at)) (then (return)))
   (if (i32.ne (local.get $at) (local.get $end)) (then (local.set $first (local.get $at))))
   (local.set $end (i32.add (local.get $at) (local.get $size)))
   (br_if $next (i32.lt_u (i32.sub (local.get $end) (local.get $first)) (local.get $bytes))))
  (loop $next
   (call $free (local.get $first))
   (local.set $first (i32.add (local.get $first) (local.get $size)))
   (br_if $next (i32.lt_u (local.get $first) (local.get $end)))))

 ;; The operating system. Error 44 is "no such file", 8 "bad file descriptor".
 (func $fail (param $error i32) (result i32)
  (i32.store (global.get $errno) (local.get $error))
  (i32.const -1))
 (func $refuse_null (result i32) (i32.store (global.get $errno) (i32.const 44)) (i32.const 0))
 (func (export "clock_gettime") (param i32 i32) (result i32)
  (memory.fill (local.get 1) (i32.const 0) (i32.const 16)) (i32.const 0))
 (func (export "clock_getres") (param i32 i32) (result i32)
  (memory.fill (local.get 1) (i32.const 0) (i32.const 16))
  (i32.store offset=8 (local.get 1) (i32.const 1)) (i32.const 0))
 (func (export "getentropy") (param i32 i32) (result i32)
  (memory.fill (local.get 0) (i32.const 0x2a) (local.get 1)) (i32.const 0))
 (func (export "getenv") (param i32) (result i32) (i32.const 0))
 (func (export "setenv") (param i32 i32 i32) (result i32) (i32.const 0))
 (func (export "unsetenv") (param i32) (result i32) (i32.const 0))
 (func (export "getpid") (result i32) (i32.const 42))
 (func (export "dlopen") (param i32 i32) (result i32) (i32.const 0))
 (func (export "dlsym") (param i32 i32) (result i32) (i32.const 0))
 (func (export "dlerror") (result i32) (i32.const 0))
 (func (export "isatty") (param i32) (result i32) (i32.const 0))
 (func (export "opendir") (param i32) (result i32) (call $refuse_null))
 (func (export "fopen") (param i32 i32) (result i32) (call $refuse_null))
 (func (export "fdopen") (param i32 i32) (result i32) (call $refuse_null))
 (func (export "realpath") (param i32 i32) (result i32) (call $refuse_null))
 (func (export "getcwd") (param i32 i32) (result i32) (call $refuse_null))
 (func (export "stat") (param i32 i32) (result i32) (call $fail (i32.const 44)))
 (func (export "lstat") (param i32 i32) (result i32) (call $fail (i32.const 44)))
 (func (export "access") (param i32 i32) (result i32) (call $fail (i32.const 44)))
 (func (export "open") (param i32 i32 i32) (result i32) (call $fail (i32.const 44)))
 (func (export "readlink") (param i32 i32 i32) (result i32) (call $fail (i32.const 44)))
 (func (export "openat") (param i32 i32 i32 i32) (result i32) (call $fail (i32.const 44)))
 (func (export "fstatat") (param i32 i32 i32 i32) (result i32) (call $fail (i32.const 44)))
 (func (export "faccessat") (param i32 i32 i32 i32) (result i32) (call $fail (i32.const 44)))
 (func (export "close") (param i32) (result i32) (call $fail (i32.const 8)))
 (func (export "fstat") (param i32 i32) (result i32) (call $fail (i32.const 8)))
 (func (export "read") (param i32 i32 i32) (result i32) (call $fail (i32.const 8)))
 (func (export "fcntl") (param i32 i32 i32) (result i32) (call $fail (i32.const 8)))
 (func (export "ioctl") (param i32 i32 i32) (result i32) (call $fail (i32.const 8)))
 (func (export "lseek") (param i32 i64 i32) (result i64) (drop (call $fail (i32.const 8))) (i64.const -1))
 (func (export "write") (param i32 i32 i32) (result i32) (local.get 2))
 (func (export "writev") (param i32 i32 i32) (result i32)
  (local $n i32)
  (loop $next
   (if (local.get 2) (then
    (local.set $n (i32.add (local.get $n) (i32.load offset=4 (local.get 1))))
    (local.set 1 (i32.add (local.get 1) (i32.const 8)))
    (local.set 2 (i32.sub (local.get 2) (i32.const 1)))
    (br $next))))
  (local.get $n))
 ;; What the C library asks of a component's world as it starts.
 (func (export "wasi:cli/environment@0.2.0#get-environment") (param i32) (i64.store (local.get 0) (i64.const 0)))
 (func (export "wasi:cli/environment@0.2.0#get-arguments") (param i32) (i64.store (local.get 0) (i64.const 0)))
 (func (export "wasi:filesystem/preopens@0.2.0#get-directories") (param i32) (i64.store (local.get 0) (i64.const 0)))
 (func (export "wasi:random/random@0.2.0#get-random-bytes") (param $n i64) (param $out i32)
  (i32.store (local.get $out) (call $malloc (i32.wrap_i64 (local.get $n))))
  (i32.store offset=4 (local.get $out) (i32.wrap_i64 (local.get $n)))
  (memory.fill (i32.load (local.get $out)) (i32.const 0x2a) (i32.wrap_i64 (local.get $n))))
 (func (export "wasi:clocks/wall-clock@0.2.0#now") (param i32)
  (i64.store (local.get 0) (i64.const 0)) (i32.store offset=8 (local.get 0) (i32.const 0)))
 (func (export "wasi:clocks/wall-clock@0.2.0#resolution") (param i32)
  (i64.store (local.get 0) (i64.const 1)) (i32.store offset=8 (local.get 0) (i32.const 0)))
 (func (export "wasi:clocks/monotonic-clock@0.2.0#now") (result i64) (i64.const 0))
 (func (export "wasi:clocks/monotonic-clock@0.2.0#resolution") (result i64) (i64.const 1))
)
