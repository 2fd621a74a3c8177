import { NextResponse, type NextFetchEvent, type NextRequest } from 'next/server'
import { tacho } from './lib/tacho'

export const config = { matcher: '/api/edge' }

export default (request: NextRequest, event: NextFetchEvent) =>
  tacho.withRun({ agentName: 'middleware', waitUntil: (promise) => event.waitUntil(promise) }, (run) => {
    run.step('saw', { path: request.nextUrl.pathname })
    const response = NextResponse.next()
    response.cookies.set('seen', 'yes')
    return response
  })
