import { Button } from './button.tsx'

interface MoreProps {
  list: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => Promise<unknown> }
  label?: string
}

/** Reads the next page of a list, while there is one. */
export function More({ list, label = 'Show more' }: MoreProps) {
  if (!list.hasNextPage) return null
  return (
    <div className="flex justify-center py-4">
      <Button busy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
        {label}
      </Button>
    </div>
  )
}
