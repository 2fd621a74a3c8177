/** The cache of everything that was read, and queries of every page. */
import {
  MutationCache,
  QueryCache,
  QueryClient,
  queryOptions,
  keepPreviousData,
  useInfiniteQuery,
} from '@tanstack/react-query'
import { includesRole } from '@tacho/contract/engine/words.ts'
import type { Role } from '@tacho/contract/web/route.ts'
import { allItems } from '@tacho/client/items.ts'
import { api, endedCalls, isLost, isSignedOut, isTemporary } from './api.ts'

/** `onSignedOut` is called when the server reports that the session has ended. */
export function createQueryClient(onSignedOut: () => void): QueryClient {
  const cache = new QueryClient({
    queryCache: new QueryCache({ onError: (error) => isSignedOut(error) && onSignedOut() }),
    // A change may have been stored although its reply was lost, so read the page's data again.
    mutationCache: new MutationCache({
      onError: (error) => void (isLost(error) && cache.invalidateQueries()),
      onSettled: () => renewStale(cache),
    }),
    defaultOptions: {
      // In its default mode, the library would queue calls while offline and send them later.
      mutations: { networkMode: 'always', retry: false },
      queries: {
        networkMode: 'always',
        refetchOnReconnect: true,
        staleTime: 5_000,
        gcTime: 10 * 60_000,
        retry: (failures, error) => isTemporary(error) && failures < 2,
      },
    },
  })
  return cache
}

/** Reads again everything that acts have made stale since the last call. */
export async function renewStale(cache: QueryClient): Promise<void> {
  const ended = [...endedCalls]
  endedCalls.clear()
  // If this part of the build cannot be loaded, treat everything as stale.
  const isStale = await import('./stale.ts').then(
    ({ isStaleAfter }) => isStaleAfter(ended),
    () => () => true,
  )
  await cache.invalidateQueries({ predicate: ({ queryKey }) => isStale(queryKey) })
}

export const meQuery = queryOptions({ queryKey: ['me'], queryFn: () => api.readMe(), staleTime: 60_000 })

export const workspacesQuery = queryOptions({
  queryKey: ['workspaces'],
  queryFn: () => allItems(api.listWorkspaces, { query: { limit: 200 } }),
  staleTime: 60_000,
})

export const environmentsQuery = (workspaceId: string) =>
  queryOptions({
    queryKey: ['environments', workspaceId],
    queryFn: () => allItems(api.listEnvironments, { params: { workspaceId }, query: { limit: 200 } }),
    staleTime: 60_000,
  })

/** The tenant in a page's address, with the person's permissions there. */
export interface Place {
  workspace: { id: string; name: string }
  environment: { id: string; name: string }
  may(role: Role): boolean
}

/** Null: the workspace or environment does not exist, or the person has no role there. */
export async function findPlace(cache: QueryClient, workspace: string, environment: string): Promise<Place | null> {
  const [me, workspaces] = await Promise.all([cache.ensureQueryData(meQuery), cache.ensureQueryData(workspacesQuery)])
  const foundWorkspace = findNamed(workspaces, workspace)
  if (!foundWorkspace) return null
  const environments = await cache.ensureQueryData(environmentsQuery(foundWorkspace.id))
  const foundEnvironment = findNamed(environments, environment)
  if (!foundEnvironment) return null
  const roles = [me.everywhere, me.workspaces.find(({ id }) => id === foundWorkspace.id)?.role ?? null]
  return {
    workspace: foundWorkspace,
    environment: foundEnvironment,
    may: (wanted) => roles.some((role) => role !== null && includesRole(role, wanted)),
  }
}

function findNamed<Item extends { id: string; name: string }>(items: readonly Item[], text: string): Item | null {
  return items.find(({ name }) => name === text) ?? items.find(({ id }) => id === text) ?? null
}

/** Reads a list page by page. */

interface Page<Item, Place> {
  items: Item[]
  nextCursor: Place | null
}

interface Options<Item, Place> {
  queryKey: readonly unknown[]
  /** Reads the page at a place, which the previous page returned; undefined: the first page. */
  read: (place: Place | undefined, signal: AbortSignal) => Promise<Page<Item, Place>>
  /** Interval for reading the list again while it has only one page. */
  refreshMs?: number
  isEnabled?: boolean
}

export function usePages<Item, Place = string>(options: Options<Item, Place>) {
  const { queryKey, read, refreshMs, isEnabled = true } = options
  const query = useInfiniteQuery({
    queryKey,
    queryFn: ({ pageParam, signal }) => read(pageParam as Place | undefined, signal),
    initialPageParam: undefined as Place | undefined,
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
    refetchInterval: ({ state }) => ((state.data?.pages.length ?? 0) > 1 ? false : (refreshMs ?? false)),
    enabled: isEnabled,
    placeholderData: keepPreviousData,
  })
  return { ...query, items: query.data?.pages.flatMap((page) => page.items) ?? [] }
}
