import { answerOf, refund, tacho } from '../../../lib/tacho'

export const runtime = 'edge'
export const dynamic = 'force-dynamic'

export const GET = async () => new Response(await tacho.withRun({ agentName: 'edge' }, () => answerOf(refund(100))))
