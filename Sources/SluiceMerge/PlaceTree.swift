/// The order of a list's places, with counts of those that each observer sees. Each operation takes O(log places), amortized.
///
/// A node's index is that of its place in `OpenList.places`; nodes are never removed. Subtrees that an insertion makes too deep are
/// rebuilt ("scapegoat tree", Galperin and Rivest 1993), so no node needs a balance of its own.
struct PlaceTree {
    /// The contents of a place, by observer.
    struct Mask: OptionSet {
        let rawValue: UInt8
        /// The writer sees the place itself.
        static let seen = Mask(rawValue: 1)
        /// The place has a present element.
        static let present = Mask(rawValue: 2)
        /// The place has an element in the base's list.
        static let base = Mask(rawValue: 4)
        /// The place has an element in the writer's list.
        static let mine = Mask(rawValue: 8)
    }

    private struct Node {
        var (left, right, up) = (PlaceTree.none, PlaceTree.none, PlaceTree.none)
        var own: Mask
        /// The counts of the subtree.
        var (all, seen, present, base, mine): (Int32, Int32, Int32, Int32, Int32) = (1, 0, 0, 0, 0)

        init(_ own: Mask) { self.own = own }

        func count(_ kind: Mask) -> Int32 {
            switch kind {
            case .seen: seen
            case .present: present
            case .base: base
            default: mine
            }
        }
    }

    private static let none: Int32 = -1

    private var nodes: [Node]
    private var root = PlaceTree.none
    #if DEBUG
        /// The number of nodes that operations have visited.
        private(set) var steps = 0
    #endif

    /// - Parameter masks: The masks of the places from left to right. O(their number).
    init(_ masks: [Mask]) {
        nodes = masks.map { Node($0) }
        root = build((0..<Int32(nodes.count)).map(\.self)[...], below: Self.none)
    }

    /// Counts visited nodes in debug builds.
    private mutating func step(_ count: Int = 1) {
        #if DEBUG
            steps += count
        #endif
    }

    /// The number of places of a kind.
    func count(_ kind: Mask) -> Int { root == Self.none ? 0 : Int(nodes[Int(root)].count(kind)) }

    func mask(_ index: Int) -> Mask { nodes[index].own }

    // MARK: Finding

    /// Returns the place with a number among those of a kind. `nil` if there are fewer.
    mutating func select(_ kind: Mask, _ number: Int) -> Int? {
        guard number >= 0, number < count(kind) else { return nil }
        var (at, rest) = (root, Int32(number))
        while true {
            step()
            let node = nodes[Int(at)]
            let left = count(kind, node.left)
            // The count of the left subtree decides the side.
            if rest < left {
                at = node.left
                continue
            }
            rest -= left
            if node.own.contains(kind) {
                if rest == 0 { return Int(at) }
                rest -= 1
            }
            at = node.right
        }
    }

    /// Returns the number of places of a kind before a place.
    mutating func rank(_ kind: Mask, of index: Int) -> Int {
        var (result, child) = (count(kind, nodes[index].left), Int32(index))
        var at = nodes[index].up
        while at != Self.none {
            step()
            let node = nodes[Int(at)]
            // Coming up from the right, the node and its left subtree are before the place.
            if node.right == child { result += count(kind, node.left) + (node.own.contains(kind) ? 1 : 0) }
            (child, at) = (at, node.up)
        }
        return Int(result)
    }

    /// Returns the first place behind another that the writer sees.
    /// - Parameter index: `nil` for the start.
    mutating func nextSeen(after index: Int?) -> Int? {
        guard let index else { return select(.seen, 0) }
        return select(.seen, rank(.seen, of: index) + (nodes[index].own.contains(.seen) ? 1 : 0))
    }

    /// Returns the next place. `nil` for the last.
    func successor(_ index: Int) -> Int? {
        var at = nodes[index].right
        if at != Self.none {
            while nodes[Int(at)].left != Self.none { at = nodes[Int(at)].left }
            return Int(at)
        }
        var child = Int32(index)
        at = nodes[index].up
        while at != Self.none, nodes[Int(at)].right == child { (child, at) = (at, nodes[Int(at)].up) }
        return at == Self.none ? nil : Int(at)
    }

    /// Returns the previous place. `nil` for the first.
    func predecessor(_ index: Int) -> Int? {
        var at = nodes[index].left
        if at != Self.none {
            while nodes[Int(at)].right != Self.none { at = nodes[Int(at)].right }
            return Int(at)
        }
        var child = Int32(index)
        at = nodes[index].up
        while at != Self.none, nodes[Int(at)].left == child { (child, at) = (at, nodes[Int(at)].up) }
        return at == Self.none ? nil : Int(at)
    }

    /// All places from left to right.
    var order: [Int] {
        var order: [Int] = []
        order.reserveCapacity(nodes.count)
        // A stack: the tree is not deep.
        var (open, at) = ([Int32](), root)
        while at != Self.none || !open.isEmpty {
            while at != Self.none {
                open.append(at)
                at = nodes[Int(at)].left
            }
            let node = open.removeLast()
            order.append(Int(node))
            at = nodes[Int(node)].right
        }
        return order
    }

    private func count(_ kind: Mask, _ index: Int32) -> Int32 { index == Self.none ? 0 : nodes[Int(index)].count(kind) }

    // MARK: Changing

    mutating func set(_ mask: Mask, at index: Int) {
        // An equal mask saves the walk to the root.
        guard nodes[index].own != mask else { return }
        nodes[index].own = mask
        _ = update(from: Int32(index))
    }

    /// Adds the place with the next index.
    /// - Parameter previous: The place before it. `nil` for the start.
    mutating func insert(_ mask: Mask, after previous: Int?) {
        let new = Int32(nodes.count)
        nodes.append(Node(mask))
        guard root != Self.none else {
            root = new
            return pull(new)
        }
        // A free right child of `previous` is next to it. Otherwise the leftmost position of its right subtree is, or of the tree if
        // there is no `previous`.
        var at = previous.map { nodes[$0].right } ?? root
        if at == Self.none, let previous {
            nodes[previous].right = new
            nodes[Int(new)].up = Int32(previous)
        } else {
            while nodes[Int(at)].left != Self.none {
                step()
                at = nodes[Int(at)].left
            }
            nodes[Int(at)].left = new
            nodes[Int(new)].up = at
        }
        let depth = update(from: new)
        // A tree in which no subtree has more than seven tenths of its parent's places cannot be deeper.
        if depth > 2 * (Int.bitWidth - nodes.count.leadingZeroBitCount) { rebalance(above: new) }
    }

    /// Updates the counts of a node's ancestors.
    /// - Returns: The depth of the node.
    private mutating func update(from index: Int32) -> Int {
        var (at, depth) = (index, 0)
        while at != Self.none {
            step()
            pull(at)
            depth += 1
            at = nodes[Int(at)].up
        }
        return depth
    }

    private mutating func rebalance(above index: Int32) {
        var (child, at) = (index, nodes[Int(index)].up)
        while at != Self.none {
            // The lowest unbalanced ancestor is the scapegoat. A tree that is too deep has one.
            if Int(nodes[Int(child)].all) * 10 > Int(nodes[Int(at)].all) * 7 { return rebuild(at) }
            (child, at) = (at, nodes[Int(at)].up)
        }
    }

    private mutating func rebuild(_ index: Int32) {
        let up = nodes[Int(index)].up
        var order: [Int32] = []
        order.reserveCapacity(Int(nodes[Int(index)].all))
        collect(index, &order)
        let top = build(order[...], below: up)
        if up == Self.none {
            root = top
        } else if nodes[Int(up)].left == index {
            nodes[Int(up)].left = top
        } else {
            nodes[Int(up)].right = top
        }
    }

    private func collect(_ index: Int32, _ order: inout [Int32]) {
        if index == Self.none { return }
        collect(nodes[Int(index)].left, &order)
        order.append(index)
        collect(nodes[Int(index)].right, &order)
    }

    private mutating func build(_ order: ArraySlice<Int32>, below up: Int32) -> Int32 {
        if order.isEmpty { return Self.none }
        step()
        // A perfectly balanced subtree. The insertions that unbalanced it have paid for it.
        let middle = order.startIndex + order.count / 2
        let top = order[middle]
        let left = build(order[..<middle], below: top)
        let right = build(order[(middle + 1)...], below: top)
        (nodes[Int(top)].left, nodes[Int(top)].right, nodes[Int(top)].up) = (left, right, up)
        pull(top)
        return top
    }

    private mutating func pull(_ index: Int32) {
        var node = nodes[Int(index)]
        node.all = 1
        node.seen = node.own.contains(.seen) ? 1 : 0
        node.present = node.own.contains(.present) ? 1 : 0
        node.base = node.own.contains(.base) ? 1 : 0
        node.mine = node.own.contains(.mine) ? 1 : 0
        add(node.left, to: &node)
        add(node.right, to: &node)
        nodes[Int(index)] = node
    }

    private func add(_ child: Int32, to node: inout Node) {
        if child == Self.none { return }
        let child = nodes[Int(child)]
        node.all += child.all
        node.seen += child.seen
        node.present += child.present
        node.base += child.base
        node.mine += child.mine
    }
}
