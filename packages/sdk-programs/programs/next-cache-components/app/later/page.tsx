import { Tacho } from '@tacho/sdk'
import { connection } from 'next/server'
import { Suspense } from 'react'

const tacho = new Tacho()

async function Answer() {
  await connection()
  return <p>{await tacho.run({ agentName: 'later' }, (run) => (run.step('rendered'), 'Later'))}</p>
}

export default () => (
  <Suspense fallback={<p>Wait</p>}>
    <Answer />
  </Suspense>
)
