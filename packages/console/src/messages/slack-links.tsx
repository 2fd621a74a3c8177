/** Slack users who can decide as a person: those of one webhook, for admins, and the person's own. */
import { allItems } from '@tacho/client/items.ts'
import type { SlackLink } from '@tacho/contract/messages/slack-link.ts'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../web/api.ts'
import { Button } from '../web/ui/button.tsx'
import { type Column, ListedTable } from '../web/ui/data-table.tsx'
import { Refused } from '../web/ui/states.tsx'
import { Nothing, Section } from '../web/ui/section.tsx'
import { ShownText } from '../web/text/shown-text.tsx'
import { Time } from '../web/text/times.tsx'
import { Confirm } from '../web/ui/form-dialog.tsx'

interface Params {
  environmentId: string
  webhookId: string
}

/** Slack reports these names, so they are as untrusted as any text. */
export function SlackUser({ of }: { of: Pick<SlackLink, 'userName' | 'userId' | 'teamName' | 'teamId'> }) {
  return (
    <>
      <bdi className="block truncate font-medium">
        <ShownText text={of.userName === '' ? of.userId : of.userName} />
      </bdi>
      <span className="block truncate text-soft">
        <ShownText text={`${of.userId} in ${of.teamName === '' ? of.teamId : of.teamName}`} />
      </span>
    </>
  )
}

export function SlackUsers({ params }: { params: Params }) {
  const [stops, setStops] = useState(false)
  const queryKey = ['slack-links', params.webhookId]
  return (
    <Section
      title="Slack users who decide"
      className="mt-6"
      note={
        <Button look="quiet" onClick={() => setStops(true)}>
          Stop decisions in Slack…
        </Button>
      }
    >
      <Links
        queryKey={queryKey}
        read={() => allItems(api.listSlackLinks, { params, query: { limit: 200 } })}
        remove={(linkId) => api.removeSlackLink({ params: { ...params, linkId } })}
        empty="No Slack user is linked yet. After the first press of a button, Slack shows that person a link. No one else sees it."
        withPerson
      />
      {stops && (
        <Confirm
          title="Stop decisions in Slack?"
          act="Remove the signing secret"
          run={() => api.changeWebhook({ params, body: { signingSecret: null } })}
          onClose={() => setStops(false)}
        >
          Messages get no buttons, presses are refused, and all links of Slack users are removed.
        </Confirm>
      )}
    </Section>
  )
}

/** Renders nothing if no Slack user is linked. */
export function OwnSlackUsers() {
  const ownLinks = useQuery({ queryKey: OWN, queryFn: readOwn })
  if (!ownLinks.data || ownLinks.data.length === 0) return null
  return (
    <Section title="Slack" className="mt-8" note="These Slack users decide as you.">
      <Links
        queryKey={OWN}
        read={readOwn}
        remove={(linkId) => api.removeOwnSlackLink({ params: { linkId } })}
        empty="None."
      />
    </Section>
  )
}

const OWN = ['own slack-links']
const readOwn = async () => (await api.listOwnSlackLinks()).items

interface LinksProps {
  queryKey: string[]
  read: () => Promise<SlackLink[]>
  remove: (id: string) => Promise<unknown>
  empty: string
  withPerson?: boolean
}

function Links({ queryKey, read, remove, empty, withPerson = false }: LinksProps) {
  const list = useQuery({ queryKey, queryFn: read })
  const removal = useMutation({ mutationFn: remove })
  const columns: Column<SlackLink>[] = [
    { head: 'Slack user', main: true, cell: (link) => <SlackUser of={link} /> },
    { head: 'Linked', wide: true, cell: ({ linkedAt }) => <Time at={linkedAt} /> },
    {
      head: 'Actions',
      right: true,
      cell: ({ id, userName }) => (
        <Button
          look="quiet"
          busy={removal.isPending && removal.variables === id}
          aria-label={`Remove the link of ${userName}`}
          onClick={() => removal.mutate(id)}
        >
          Remove
        </Button>
      ),
    },
  ]
  if (withPerson) columns.splice(1, 0, { head: 'Decides as', cell: ({ operator }) => <bdi>{operator.email}</bdi> })
  return (
    <>
      <Refused error={removal.error} className="mb-2" />
      <ListedTable label="Slack users" columns={columns} list={list} empty={<Nothing>{empty}</Nothing>} />
    </>
  )
}
