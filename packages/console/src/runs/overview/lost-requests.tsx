/** OpenTelemetry requests that were refused for good. Exporters drop them, and the runs look complete. */
import { allItems } from '@tacho/client/items.ts'
import type { ApiKey } from '@tacho/contract/tenants/api-key.ts'
import { printable } from '@tacho/contract/engine/shown-text.ts'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { api } from '../../web/api.ts'
import { Chip } from '../../web/ui/chip.tsx'
import { counted } from '../../web/text/format.ts'
import { Section } from '../../web/ui/section.tsx'
import { Time } from '../../web/text/time.tsx'
import { Row } from './row.tsx'

const route = getRouteApi('/w/$workspace/$environment')
const SHOWN_MS = 7 * 86_400_000
const REFRESH_MS = 60_000

export function LostRequests() {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const environmentId = place.environment.id
  const { data } = useQuery({
    queryKey: ['api keys', environmentId],
    queryFn: () => allItems(api.listApiKeys, { params: { environmentId }, query: { limit: 200 } }),
    refetchInterval: REFRESH_MS,
  })
  const lost = (data ?? []).filter(({ lastLostAt }) => isRecent(lastLostAt))
  if (lost.length === 0) return null
  return (
    <Section title="Lost OpenTelemetry requests" className="mt-4">
      {lost.map((key) => (
        <Row
          key={key.id}
          link={(props) => <Link to="/w/$workspace/$environment/settings/api-keys" params={params} {...props} />}
          chip={<Chip tone="red">{counted(key.lostRequests, 'request')}</Chip>}
          name={key.name}
          note={printable(key.lastLostReason ?? '')}
          aside={key.lastLostAt && <Time at={key.lastLostAt} />}
        />
      ))}
    </Section>
  )
}

function isRecent(at: ApiKey['lastLostAt']): boolean {
  return at !== null && Date.now() - Date.parse(at) < SHOWN_MS
}
