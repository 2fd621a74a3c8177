import { answerOf, refund, tacho } from '../../../lib/tacho'

export const dynamic = 'force-dynamic'
export const fetchCache = 'default-cache'

export const GET = async () => new Response(await tacho.withRun({ agentName: 'route' }, () => answerOf(refund(100))))
