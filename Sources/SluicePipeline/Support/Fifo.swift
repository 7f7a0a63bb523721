/// A first-in, first-out queue. Appending and removing take amortized constant time.
struct Fifo<Element> {
    /// Holds nil at every index before `head`.
    private var items: [Element?] = []
    private var head = 0

    var isEmpty: Bool { head == items.count }
    var count: Int { items.count - head }
    var first: Element? { isEmpty ? nil : items[head] }
    var last: Element? { isEmpty ? nil : items[items.count - 1] }

    /// - Parameter index: The distance from the first element, below `count`.
    subscript(_ index: Int) -> Element {
        guard let element = items[head + index] else { preconditionFailure("\(index) is gone") }
        return element
    }

    mutating func append(_ element: Element) { items.append(element) }

    mutating func replaceLast(with element: Element) {
        if isEmpty { items.append(element) } else { items[items.count - 1] = element }
    }

    mutating func removeAll(where isGone: (Element) -> Bool) {
        items = items[head...].filter { $0.map { !isGone($0) } ?? false }
        head = 0
    }

    mutating func popFirst() -> Element? {
        guard !isEmpty else { return nil }
        let element = items[head].take()
        head += 1
        // Compact only when half of the storage is empty, so that the copies cost amortized constant time.
        if head >= 64, 2 * head >= items.count {
            items.removeFirst(head)
            head = 0
        }
        return element
    }
}
