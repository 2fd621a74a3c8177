import { answerOf, refund, tacho } from '../../../lib/tacho'

export const dynamic = 'force-dynamic'

const encoder = new TextEncoder()

/** Calls its tool after it has returned the Response, as agents with a streaming model do. */
export const GET = (request: Request) => {
  const how = new URL(request.url).searchParams.get('how') ?? 'ends'
  return tacho.withRun({ agentName: `stream ${how}` }, () => {
    let parts = 0
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        await new Promise((resolve) => setTimeout(resolve, 50))
        parts++
        if (parts === 2) controller.enqueue(encoder.encode(await answerOf(refund(parts))))
        else if (parts < 4 || how === 'left') controller.enqueue(encoder.encode('.'))
        else if (how === 'breaks') controller.error(new Error('the model broke'))
        else controller.close()
      },
    })
    return new Response(body, { headers: { 'x-program': 'stream' } })
  })
}
