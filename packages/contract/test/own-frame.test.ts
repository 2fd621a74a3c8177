import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ownFrame } from '../src/issues/stack-frame.ts'

test('of a V8 stack, the newest call in the own code', () => {
  const stack = `TypeError: fetch failed
    at node:internal/deps/undici/undici:13510:13
    at process.processTicksAndRejections (node:internal/process/task_queues:105:5)
    at async send (/app/node_modules/@tacho/sdk/dist/guard.js:3:9)
    at async Object.chargeCard [as run] (file:///app/dist/tools/payment.js:12:19)
    at async main (file:///app/dist/main.js:4:3)`
  assert.equal(ownFrame(stack), 'chargeCard (tools/payment.js)')
})

test('code without a name has its file; names of classes stay', () => {
  assert.equal(ownFrame('Error: x\n    at file:///srv/agent/main.ts:1:1'), 'agent/main.ts')
  assert.equal(ownFrame('Error: x\n    at Object.<anonymous> (/srv/agent/main.js:1:1)'), 'agent/main.js')
  assert.equal(ownFrame('Error: x\n    at new Order (/srv/agent/order.js:1:1)'), 'Order (agent/order.js)')
  assert.equal(
    ownFrame('Error: x\n    at OrderTool.run (C:\\agent\\tools\\order.js:1:1)'),
    'OrderTool.run (tools/order.js)',
  )
})

test('a digest in the name of a bundle is left out', () => {
  const at = (file: string) => ownFrame(`Error: x\n    at run (/app/dist/${file}:1:1)`)
  assert.equal(at('main-8f3a2b1c.js'), at('main-77e01d4f.js'))
  assert.equal(at('main-8f3a2b1c.js'), 'run (dist/main.js)')
})

test('of a Python traceback, the newest call in the own code; of chained ones, that of the error itself', () => {
  const first = `Traceback (most recent call last):
  File "/app/tools/orders.py", line 9, in load
    return rows[key]
KeyError: 'a'
`
  const second = `Traceback (most recent call last):
  File "/app/agent/main.py", line 31, in <module>
    answer(question)
  File "/app/agent/graph.py", line 12, in answer
    return graph.invoke(state)
  File "/usr/lib/python3.12/site-packages/langgraph/pregel/main.py", line 2400, in stream
    raise GraphRecursionError(msg)
langgraph.errors.GraphRecursionError: Recursion limit
`
  assert.equal(ownFrame(first), 'load (tools/orders.py)')
  assert.equal(ownFrame(second), 'answer (agent/graph.py)')
  const between = '\nDuring handling of the above exception, another exception occurred:\n\n'
  assert.equal(ownFrame(`${first}${between}${second}`), 'answer (agent/graph.py)')
})

test('a stack of libraries only, or of another form, has no own frame', () => {
  assert.equal(ownFrame('Error: x\n    at f (node:fs:1:1)\n    at g (/a/node_modules/x/y.js:2:2)'), null)
  assert.equal(ownFrame('Error: x\n    at async Promise.all (index 0)\n    at JSON.parse (<anonymous>)'), null)
  assert.equal(ownFrame('panic: runtime error\ngoroutine 1 [running]'), null)
  assert.equal(ownFrame(''), null)
})

test('a long stack takes no long time', () => {
  const start = process.threadCpuUsage()
  ownFrame('at ('.repeat(500_000))
  ownFrame('    at f (node:fs:1:1)\n'.repeat(100_000))
  ownFrame(`File "${'", line '.repeat(100_000)}`)
  // Measure processor time, because other tests run at the same time.
  const { user, system } = process.threadCpuUsage(start)
  assert.ok(user + system < 500_000)
})
