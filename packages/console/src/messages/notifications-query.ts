import { queryOptions } from '@tanstack/react-query'
import { api } from '../web/api.ts'
import { ownRow } from './push.ts'

/** `own`: the row of this browser. */
export const notificationsQuery = queryOptions({
  queryKey: ['notifications'],
  queryFn: async () => {
    const settings = await api.readNotificationSettings()
    return { ...settings, own: await ownRow(settings.browsers) }
  },
})
