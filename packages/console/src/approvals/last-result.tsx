import { stepName } from '../runs/page/notes.ts'
import type { InputPreview } from '@tacho/contract/approvals/operator-approval.ts'
import { memberText } from '@tacho/contract/record/json-text.ts'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { api, refusalOf } from '../web/api.ts'
import { eventQuery } from '../runs/queries.ts'
import { JsonText } from '../web/text/json-text.tsx'
import { Nothing, Section } from '../web/ui/section.tsx'
import { ShownText } from '../web/text/shown-text.tsx'
import { Time } from '../web/text/times.tsx'
import { innerJson, plainValue, sharedValue } from './input-values.ts'

const route = getRouteApi('/w/$workspace/$environment/approvals/$approvalId')
const STEPS_SEARCHED = 50
const RESULTS_READ = 6
const RESULT_BYTES = 65_536
const RESULTS: ReadonlySet<string> = new Set(['TOOL_CALL', 'RETRIEVAL'])

/**
 * The newest result before the request that contains a value of its input; without one, the newest result. Null: there
 * is no result.
 */
function useLastResult(environmentId: string, runId: string, input: InputPreview) {
  const cache = useQueryClient()
  return useQuery({
    queryKey: ['last result', environmentId, runId, input.eventId],
    staleTime: Infinity,
    queryFn: async ({ signal }) => {
      const query = { order: 'latest', limit: STEPS_SEARCHED } as const
      const { items } = await api.listEventRows({ params: { environmentId, runId }, query }, { signal })
      const asked = items.findIndex(({ eventId }) => eventId === input.eventId)
      const rows = items
        .slice(asked + 1)
        .filter(({ eventType, payloadBytes }) => RESULTS.has(eventType) && payloadBytes <= RESULT_BYTES)
        .slice(0, RESULTS_READ)
      const events = await Promise.all(
        rows.map(({ eventId }) => cache.fetchQuery(eventQuery(environmentId, runId, eventId))),
      )
      const results = events.flatMap(({ event, payloadText }) => {
        const json = innerJson(memberText(payloadText, 'output') ?? memberText(payloadText, 'documents'))
        return json === null ? [] : [{ event, json, shared: sharedValue(input.json, json) }]
      })
      return results.find(({ shared }) => shared !== null) ?? results[0] ?? null
    },
  })
}

export function LastResult({
  environmentId,
  runId,
  input,
}: {
  environmentId: string
  runId: string
  input: InputPreview
}) {
  const params = route.useParams()
  const { data, error } = useLastResult(environmentId, runId, input)
  const isUnknown = refusalOf(error)?.status === 404
  if (data === null || isUnknown) return null
  return (
    <Section
      title={data?.shared === null ? 'Last result before it' : 'The result it depends on'}
      error={!data && error}
      note={data && <Time at={data.event.timestamp} />}
    >
      {data ? (
        <>
          <p className="mb-2 text-sm">
            <Link
              to="/w/$workspace/$environment/runs/$runId"
              params={{ ...params, runId }}
              search={{ step: data.event.eventId }}
              className="link"
            >
              <bdi>
                <ShownText text={stepName(data.event)} />
              </bdi>
            </Link>
            {data.shared !== null && (
              <span className="text-soft">
                {' '}
                returned{' '}
                <bdi className="font-mono">
                  <ShownText text={plainValue(data.shared)} />
                </bdi>
                , which the input has too.
              </span>
            )}
          </p>
          <div className="rounded-lg border border-line bg-side px-3 py-2">
            <JsonText json={data.json} />
          </div>
        </>
      ) : (
        <Nothing>Reading…</Nothing>
      )}
    </Section>
  )
}
