/** The calls about people of one workspace, or of the whole installation: the same acts under two paths. */
import { allItems } from '@tacho/client/items.ts'
import type { Role } from '@tacho/contract/web/access.ts'
import type { NewInvitation } from '@tacho/contract/people/operator.ts'
import { api } from '../web/api.ts'

const query = { limit: 200 }

export function peopleOf(workspaceId: string | null) {
  if (workspaceId === null) {
    return {
      key: ['everybody'],
      people: () => allItems(api.listInstallationOperators, { query }),
      invitations: () => allItems(api.listInstallationInvitations, { query }),
      invite: (body: NewInvitation) => api.inviteEverywhere({ body }),
      revoke: (invitationId: string) => api.revokeInstallationInvitation({ params: { invitationId } }),
      changeRole: (operatorId: string, role: Role | null) =>
        api.changeInstallationRole({ params: { operatorId }, body: { role } }),
      remove: (operatorId: string) => api.deleteOperator({ params: { operatorId } }),
    }
  }
  const params = { workspaceId }
  return {
    key: ['people', workspaceId],
    people: () => allItems(api.listOperators, { params, query }),
    invitations: () => allItems(api.listInvitations, { params, query }),
    invite: (body: NewInvitation) => api.invite({ params, body }),
    revoke: (invitationId: string) => api.revokeInvitation({ params: { ...params, invitationId } }),
    changeRole: (operatorId: string, role: Role | null) =>
      role === null
        ? api.removeOperator({ params: { ...params, operatorId } })
        : api.changeRole({ params: { ...params, operatorId }, body: { role } }),
    remove: (operatorId: string) => api.removeOperator({ params: { ...params, operatorId } }),
  }
}
