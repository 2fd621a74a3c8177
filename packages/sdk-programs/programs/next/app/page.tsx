import { answerOf, gift, tacho } from '../lib/tacho'

export const dynamic = 'force-dynamic'

async function give() {
  'use server'
  await tacho.run({ agentName: 'action' }, async (run) => {
    run.step(`gift: ${await answerOf(gift(1))}`)
  })
}

export default async function Page() {
  const answer = await tacho.run({ agentName: 'page' }, () => answerOf(gift(2)))
  return (
    <form action={give}>
      <button>{answer}</button>
    </form>
  )
}
