import { Tacho } from '@tacho/sdk'

const tacho = new Tacho()

/** A page that Next.js renders during the build. */
export default async function Page() {
  const text = await tacho.run({ agentName: 'prerendered' }, (run) => {
    run.step('rendered')
    return 'Hello'
  })
  return <p>{text}</p>
}
