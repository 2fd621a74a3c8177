import { Tacho } from '@tacho/sdk'

const tacho = new Tacho()

/** Rendered while it is built. */
export default async function Page() {
  const text = await tacho.run({ agentName: 'prerendered' }, (run) => {
    run.step('rendered')
    return 'Hello'
  })
  return <p>{text}</p>
}
