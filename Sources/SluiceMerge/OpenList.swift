import SluiceCore

/// A list with its clock, indexed for the edits of one writer: n edits of m places take O((n + m) log m).
///
/// References resolve from the writer's point of view, so changes of others that arrived earlier make no difference.
final class OpenList {
    let writer: WriteContext
    /// The places found at `open` from left to right, then the new ones in the order of the edits.
    private(set) var places: [ListClock.Place]
    /// By first place of an element. Null if the element is removed.
    var values: [Value]
    var tree: PlaceTree
    private(set) var elements: [Element] = []
    /// `true` once an edit has had an effect.
    private(set) var isChanged = false
    /// `true` while `places` are in the order of the list.
    private var isInOrder = true
    /// The last place of the list.
    private var last: Int?
    /// `true` while each place has a present element, so that `values` are the list.
    private var isPlain: Bool
    private var indices: [ListClock.ID: Int32]?
    private var lookups = 0
    private var children: PlaceChildren?
    /// Elements by value. Built for the first reference whose index does not lead to its element.
    var valueIndex: ValueIndex?
    /// `true` if the clock had no history of this list.
    private(set) var isFresh = false
    /// The contents that the clock had instead, of another value.
    private var replaced: Contents?
    #if DEBUG
        private var scanned = 0
    #endif

    /// The current place of an element, by observer. -1 for none.
    struct Element {
        /// The element's first place. -1 if unknown. The other fields are used at first places only.
        var first: Int32
        var (present, base, mine): (Int32, Int32, Int32)
        /// The observers that see it removed.
        var removed: PlaceTree.Mask
    }

    /// The number of lookups by id that scan the places. Later lookups use a dictionary.
    private static let fewLookups = 4

    // MARK: Opening and closing

    /// - Parameter contents: The contents of the value's clock. They are `nil` until `close`.
    static func open(_ elements: [Value], _ contents: inout Contents?, by writer: WriteContext) -> OpenList {
        if case .list(let list)? = contents, let open = OpenList(list, elements, by: writer) {
            contents = nil
            return open
        }
        let open = OpenList(plain: ListClock(count: elements.count), elements, by: writer)
        (open.isFresh, open.replaced) = (true, contents)
        contents = nil
        return open
    }

    /// - Returns: `nil` if the clock is of a list of another length.
    private init?(_ list: ListClock, _ values: [Value], by writer: WriteContext) {
        (self.writer, places, self.values, tree, isPlain) = (writer, list.places, values, PlaceTree([]), true)
        plant()
        // The clock has no values: they are matched to the present elements by order. With another count it is not the clock of
        // this list.
        guard tree.count(.present) == values.count else { return nil }
        guard !isPlain else { return }
        self.values = Array(repeating: .null, count: places.count)
        var rest = values[...]
        for place in places.indices where tree.mask(place).contains(.present) {
            if let value = rest.popFirst() { self.values[Int(elements[place].first)] = value }
        }
    }

    private init(plain list: ListClock, _ values: [Value], by writer: WriteContext) {
        (self.writer, places, self.values, tree, isPlain) = (writer, list.places, values, PlaceTree([]), true)
        plant()
    }

    /// Builds the tree and the elements from the places. O(places).
    private func plant() {
        elements.reserveCapacity(places.count)
        var moves: [Int] = []
        for index in places.indices {
            var removed: PlaceTree.Mask = []
            if !places[index].removals.isEmpty {
                for removal in places[index].removals { removed.formUnion(observers(of: removal.lsn, isMine: writer.sees(removal))) }
            }
            if places[index].element != nil { moves.append(index) }
            let place = Int32(index)
            elements.append(
                Element(
                    first: places[index].element == nil ? place : -1, present: place,
                    base: writer.baseSees(places[index].lsn) ? place : -1, mine: mineSees(index) ? place : -1, removed: removed))
        }
        // After the loop above: the first place of a moved element may be right of the move, and must have its record before.
        for index in moves {
            guard let id = places[index].element, let first = self.index(of: id), places[first].element == nil else { continue }
            elements[index].first = Int32(first)
            stand(first, at: index)
        }
        last = places.indices.last
        // A mask depends on the current places of the element, so the moves come first.
        tree = PlaceTree(places.indices.map(mask))
        isPlain = moves.isEmpty && tree.count(.present) == places.count
    }

    /// Stores value and clock. The list must not be used afterwards.
    func close(_ value: inout Value, _ contents: inout Contents?) {
        #if DEBUG
            MergeWork.counter?.add(tree.steps + scanned)
        #endif
        value = .list(current)
        guard isChanged || !isFresh else { return contents = replaced }
        // New places are at the end of the array. The stored clock is in list order, as `open` expects it.
        if !isInOrder { places = tree.order.map { places[$0] } }
        contents = .list(ListClock(places: places))
        (places, values) = ([], [])
    }

    /// The present elements. O(places), or O(1) after edits that keep the order of `values`.
    var current: [Value] {
        if isPlain && isInOrder { return values }
        let order = isInOrder ? Array(places.indices) : tree.order
        return order.compactMap { tree.mask($0).contains(.present) ? values[Int(elements[$0].first)] : nil }
    }

    /// The number of present elements.
    var count: Int { tree.count(.present) }

    // MARK: Observers

    /// `true` if no client had changed the list before the writer's base. O(places).
    var isYounger: Bool {
        places.allSatisfy { place in
            (place.stamp == .zero || !writer.baseSees(place.lsn)) && place.removals.allSatisfy { !writer.baseSees($0.lsn) }
        }
    }

    private func mineSees(_ index: Int) -> Bool { writer.sees(places[index]) }

    private func observers(of place: Int) -> PlaceTree.Mask { observers(of: places[place].lsn, isMine: mineSees(place)) }

    private func observers(of lsn: LSN, isMine: Bool) -> PlaceTree.Mask {
        // A writer that created the object may see less than its base includes.
        switch (writer.baseSees(lsn), isMine) {
        case (true, true): [.present, .base, .mine]
        case (true, false): [.present, .base]
        case (false, true): [.present, .mine]
        case (false, false): .present
        }
    }

    private func mask(_ index: Int) -> PlaceTree.Mask {
        var mask: PlaceTree.Mask = mineSees(index) ? .seen : []
        let first = Int(elements[index].first)
        guard first >= 0 else { return mask }
        let (element, place) = (elements[first], Int32(index))
        // An observer sees an element if it sees the insertion and no removal, at the place of the latest move that it sees.
        let observers = observers(of: first).subtracting(element.removed)
        if element.present == place, observers.contains(.present) { mask.insert(.present) }
        if element.base == place, observers.contains(.base) { mask.insert(.base) }
        if element.mine == place, observers.contains(.mine) { mask.insert(.mine) }
        return mask
    }

    /// Makes a place the current one of an element, for the observers that see it and no later move.
    private func stand(_ first: Int, at index: Int) {
        func isLater(than other: Int32) -> Bool { other < 0 || !places[Int(other)].isLater(than: places[index]) }
        let observers = observers(of: index)
        if isLater(than: elements[first].present) { elements[first].present = Int32(index) }
        if observers.contains(.base), isLater(than: elements[first].base) { elements[first].base = Int32(index) }
        if observers.contains(.mine), isLater(than: elements[first].mine) { elements[first].mine = Int32(index) }
    }

    /// Returns the current place of an element. `nil` if it is removed.
    func presentPlace(of first: Int) -> Int? {
        let place = Int(elements[first].present)
        return place >= 0 && tree.mask(place).contains(.present) ? place : nil
    }

    func index(of id: ListClock.ID) -> Int? {
        if let indices { return indices[id].map { Int($0) } }
        lookups += 1
        scan()
        if lookups <= OpenList.fewLookups { return places.firstIndex { $0.id == id } }
        var indices: [ListClock.ID: Int32] = [:]
        indices.reserveCapacity(places.count)
        // Reversed, so that of equal ids the first place wins, as in the scan above.
        for index in places.indices.reversed() { indices[places[index].id] = Int32(index) }
        self.indices = indices
        return indices[id].map { Int($0) }
    }

    /// Counts a look at all places.
    private func scan() {
        #if DEBUG
            scanned += places.count
        #endif
    }

    private func edited() {
        isChanged = true
        // The base changes only where the log has no positions yet.
        if writer.baseSees(writer.now) { valueIndex = nil }
    }

    // MARK: Editing

    /// Inserts an element behind another. A repeated insertion is already in the list.
    func insert(_ new: Value, behind after: ElementRef?, _ tag: UInt64) throws(SluiceError) -> Merge.Outcome {
        if index(of: ListClock.ID(client: writer.stamp.client, tag: tag)) != nil { return .same }
        add(tag, nil, behind: try anchor(after), new)
        return .changed
    }

    func move(_ first: Int, behind after: ElementRef?, _ tag: UInt64) throws(SluiceError) -> Merge.Outcome {
        if index(of: ListClock.ID(client: writer.stamp.client, tag: tag)) != nil { return .same }
        let behind = try anchor(after)
        let before = presentPlace(of: first).map { tree.rank(.present, of: $0) }
        isPlain = false
        add(tag, first, behind: behind, .null)
        let after = presentPlace(of: first).map { tree.rank(.present, of: $0) }
        // Among present elements: a move that changes no rank changes nothing that an app can see.
        return before == after ? .same : .changed
    }

    func remove(_ first: Int) -> Merge.Outcome {
        let wasPresent = presentPlace(of: first) != nil
        // Before the value is dropped: references by value of older writers find the element by this hash.
        if wasPresent { remember(originalHash(of: first), of: first) }
        let removal = ListClock.Removal(client: writer.stamp.client, lsn: writer.now, changeset: writer.changeset)
        places[first].removals.append(removal)
        elements[first].removed.formUnion(observers(of: writer.now, isMine: writer.sees(removal)))
        isPlain = false
        values[first] = .null
        update(first)
        edited()
        return wasPresent ? .changed : .same
    }

    /// Returns the clock of an element's value.
    func clock(of first: Int) -> PropertyClock { places[first].value?.clock ?? PropertyClock(stamp: places[first].stamp) }

    /// Returns the hash of an element's inserted value. `nil` if the value has changed since.
    func originalHash(of first: Int) -> ValueHash? { places[first].original == nil ? ValueHash(values[first]) : nil }

    /// Records a change of an element's value.
    /// - Parameter hash: The result of `originalHash` before the change.
    func change(_ first: Int, _ hash: ValueHash?, _ clock: PropertyClock) {
        remember(hash, of: first)
        places[first].value = Contents.Entry(clock: clock, lsn: writer.now)
        edited()
    }

    private func remember(_ hash: ValueHash?, of first: Int) {
        guard let hash, places[first].original == nil else { return }
        places[first].original = ListClock.Original(hash: hash, until: writer.now)
        noteOriginal(hash, of: first)
    }

    /// Updates the counts at the places of an element.
    private func update(_ first: Int) {
        let element = elements[first]
        for place in [element.present, element.base, element.mine] where place >= 0 { tree.set(mask(Int(place)), at: Int(place)) }
    }

    // MARK: Adding places

    /// Adds a place behind another in the list that the writer sees.
    /// - Parameters:
    ///   - moved: The first place of the moved element. `nil` for a new element with the value.
    ///   - left: The place before. `nil` for the start.
    private func add(_ tag: UInt64, _ moved: Int?, behind left: Int?, _ value: Value) {
        var children = self.children ?? PlaceChildren(places) { index(of: $0) }
        self.children = nil
        // Among the places that the writer sees: those of unseen writers must not decide on which side the new one hangs.
        let next = tree.nextSeen(after: left)
        var place = ListClock.Place(
            stamp: writer.stamp, tag: tag, parent: left.map { places[$0].id }, isLeft: false, element: moved.map { places[$0].id },
            lsn: writer.now)
        var parent = left
        // With a visible right child, the place becomes the left child of the next visible place (Fugue).
        if let next, children.contains(of: left, where: { !places[$0].isLeft && mineSees($0) }) {
            (place.parent, place.isLeft, parent) = (places[next].id, true, next)
        }
        let previous = position(of: place, below: parent, children)
        // The current places before the move. Their masks are set last, once `stand` has chosen the new ones.
        let (old, new) = (moved.map { elements[$0] }, places.count)
        children.insert(new, below: parent)
        self.children = children
        indices?[place.id] = Int32(new)
        places.append(place)
        values.append(value)
        let observers = observers(of: new)
        elements.append(
            Element(
                first: Int32(moved ?? new), present: Int32(new), base: observers.contains(.base) ? Int32(new) : -1, mine: Int32(new),
                removed: []))
        if let moved { stand(moved, at: new) }
        tree.insert(mask(new), after: previous)
        if previous == last { last = new } else { isInOrder = false }
        if let old { for place in [old.present, old.base, old.mine] where place >= 0 { tree.set(mask(Int(place)), at: Int(place)) } }
        edited()
    }

    /// Returns the place that a new one follows. `nil` for the start.
    private func position(of place: ListClock.Place, below parent: Int?, _ children: PlaceChildren) -> Int? {
        var (last, first): (Int?, Int?) = (nil, nil)
        children.forEach(of: parent) { sibling in
            guard places[sibling].isLeft == place.isLeft else { return }
            // Siblings are in the order of their stamps: `last` is the latest before the new place, `first` the earliest behind it. All
            // copies agree, whatever the order of arrival.
            if place.isLater(than: places[sibling]) {
                if last.map({ places[sibling].isLater(than: places[$0]) }) ?? true { last = sibling }
            } else if first.map({ places[$0].isLater(than: places[sibling]) }) ?? true {
                first = sibling
            }
        }
        if let last { return end(of: last, children) { tree.successor($0) } }
        if let first { return tree.predecessor(end(of: first, children) { tree.predecessor($0) }) }
        guard let parent else { return nil }
        return place.isLeft ? tree.predecessor(parent) : parent
    }

    /// Returns the outermost of a place and its descendants, which are adjacent. O(their number). The writer's next insertion has another
    /// parent, so all its insertions together visit each place once.
    private func end(of root: Int, _ children: PlaceChildren, _ step: (Int) -> Int?) -> Int {
        let below = children.all(below: root)
        #if DEBUG
            scanned += below.count
        #endif
        var end = root
        while let next = step(end), below.contains(next) { end = next }
        return end
    }
}
