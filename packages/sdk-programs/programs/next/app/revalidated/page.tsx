import { answerOf, refund, tacho } from '../../lib/tacho'

export const revalidate = 1

export default async function Page() {
  return <p>{await tacho.run({ agentName: 'revalidated' }, () => answerOf(refund(3)))}</p>
}
