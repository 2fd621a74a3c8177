/**
 * The page on which a person links their account to the Slack user who pressed a button. The code is in the part after
 * #, which browsers never send to a server, and opening the page changes nothing.
 */
import { useMutation, useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useRouter } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { api, refusalOf } from '../web/api.ts'
import { meQuery } from '../web/queries.ts'
import { Button } from '../web/ui/button.tsx'
import { Refused, explain } from '../web/ui/states.tsx'
import { useTitle } from '../web/ui/browser.ts'
import { SlackUser } from './slack-links.tsx'

const route = getRouteApi('/w/$workspace/$environment/slack-link')

export function SlackLinkPage() {
  const names = route.useParams()
  const { place } = route.useRouteContext()
  const router = useRouter()
  const me = useQuery(meQuery)
  const [[webhookId, code]] = useState(() => partsOf(window.location.hash))
  const params = { environmentId: place.environment.id, webhookId }
  const asked = useQuery({
    queryKey: ['slack code', code],
    queryFn: () => api.openSlackLink({ params, body: { code } }),
    enabled: code !== '',
    retry: false,
    staleTime: Infinity,
  })
  const confirm = useMutation({ mutationFn: () => api.confirmSlackLink({ params, body: { code } }) })
  useTitle('Link Slack')
  useEffect(() => {
    // Remove the code from the address bar and the history.
    void router.navigate({ to: '/w/$workspace/$environment/slack-link', params: names, replace: true })
  }, [router, names])

  return (
    <div className="flex max-w-lg flex-col gap-4 pt-6">
      <h1 className="text-xl font-semibold">Decide in Slack</h1>
      {code === '' && <p>Part of the link is missing. Press the button in Slack again.</p>}
      {asked.error !== null && (
        <p>
          {refusalOf(asked.error)?.status === 404
            ? 'This link no longer works: it was used, replaced, or has expired. Press the button in Slack again.'
            : explain(asked.error)}
        </p>
      )}
      {asked.data && !confirm.isSuccess && (
        <>
          <div className="rounded-lg border border-line px-4 py-3">
            <SlackUser of={asked.data} />
          </div>
          <p>
            This Slack user will decide approvals in {place.environment.name} as{' '}
            <bdi className="font-medium">{me.data?.email ?? 'you'}</bdi>, as far as your role allows.
          </p>
          <p className="font-medium text-amber">
            Confirm only if this is you, and you pressed the button just now. Someone else would decide in your name.
          </p>
          <Refused error={confirm.error} />
          <div>
            <Button look="accent" busy={confirm.isPending} onClick={() => confirm.mutate()}>
              This is me: link it
            </Button>
          </div>
        </>
      )}
      {confirm.isSuccess && (
        <>
          <p role="status">Linked. Press the button in Slack again to decide.</p>
          <Link to="/w/$workspace/$environment/settings/account" params={names} className="link text-sm">
            Your links are in your account
          </Link>
        </>
      )}
    </div>
  )
}

/** The webhook id and the code in the hash. */
function partsOf(hash: string): [webhookId: string, code: string] {
  const [webhookId = '', code = ''] = hash.slice(1).split('.')
  return [webhookId, code]
}
