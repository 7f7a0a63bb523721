/// First in, first out; both in constant time.
struct Fifo<Element> {
    /// Before `head` they are gone.
    private var items: [Element?] = []
    private var head = 0

    var isEmpty: Bool { head == items.count }
    var count: Int { items.count - head }
    var first: Element? { isEmpty ? nil : items[head] }

    /// - Parameter index: from the first on, below `count`.
    subscript(_ index: Int) -> Element {
        guard let element = items[head + index] else { preconditionFailure("\(index) is gone") }
        return element
    }

    mutating func append(_ element: Element) { items.append(element) }

    mutating func popFirst() -> Element? {
        guard !isEmpty else { return nil }
        let element = items[head].take()
        head += 1
        if head >= 64, 2 * head >= items.count {
            items.removeFirst(head)
            head = 0
        }
        return element
    }
}
