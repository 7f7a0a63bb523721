import SluiceCore

@testable import SluiceRealm

/// A list whose elements have names, and the edits that some file may not have seen.
///
/// A writer's index is read in the writer's own list: the list at its base, plus its own edits that the base lacks. Without concurrent
/// edits that is the server's list, and recipients apply the writer's instruction. Otherwise all holders receive the whole list.
///
/// Memory: the order at `floor` and the edits since then, at most `RealmIntegrationBounds.listEdits`. Beyond the bound, the
/// oldest are forgotten: a file that has not seen them needs a reset.
struct RealmListHistory: Hashable, Sendable {
    struct Element: Hashable, Sendable {
        let name: UInt64
        var value: Value
        var stamp: RealmStamp
        var version: UInt64
    }

    /// A step of the server's list.
    private enum Step: Hashable, Sendable {
        case insert(UInt64, Int)
        case remove(Int)
        case clear

        func apply(to names: inout [UInt64]) {
            switch self {
            case .insert(let name, let index): names.insert(name, at: index)
            case .remove(let index): names.remove(at: index)
            case .clear: names = []
            }
        }
    }

    private struct LoggedStep: Hashable, Sendable {
        var version: UInt64
        var step: Step
    }

    /// A version that edited the list. The file is 0 after a conflict: the version is then a stranger's for its writer as well.
    private struct Change: Hashable, Sendable {
        var version: UInt64
        var file: UInt64
    }

    /// An edit as its writer made it, by names.
    struct Edit: Hashable, Sendable {
        enum Action: Hashable, Sendable {
            case insert(UInt64, after: UInt64?)
            case remove(UInt64)
            case move(UInt64, after: UInt64?)
            case clear
        }
        var writer: RealmWriter
        var action: Action
    }

    /// A Clear in the stream of a file.
    private struct SentClear: Hashable, Sendable {
        var file: UInt64
        var version: UInt64
        var stamp: RealmStamp
    }

    private(set) var elements: [Element] = []
    private(set) var forgotten = RealmForgottenHistory()
    private var floor: UInt64 = 0
    private var oldest: [UInt64] = []
    private var steps: [LoggedStep] = []
    private var changes: [Change] = []
    private var clears: [Change] = []
    private var edits: [Edit] = []
    private var sentClears: [SentClear] = []
    private var nextName: UInt64 = 1

    var values: [Value] { elements.map(\.value) }

    /// The number of remembered edits.
    var cost: Int { steps.count + changes.count + clears.count + edits.count + sentClears.count }

    /// `true` if another file, or the server, changed the list after the writer's base.
    func hasConflict(_ writer: RealmWriter) -> Bool { changes.contains { writer.isConcurrent($0.version, by: $0.file) } }

    /// Records a version that edited the list.
    mutating func note(_ writer: RealmWriter, isConflict: Bool) {
        let change = Change(version: writer.version, file: isConflict ? 0 : writer.file)
        if changes.last != change { changes.append(change) }
    }

    /// Records that a Clear is in a file's stream: edits of the file that were pending are gone from its list.
    mutating func sentClear(to file: UInt64, version: UInt64, stamp: RealmStamp) {
        sentClears.append(SentClear(file: file, version: version, stamp: stamp))
    }

    // MARK: The writer's list

    private func names(at base: UInt64) -> [UInt64] {
        var names = oldest
        for step in steps {
            if step.version > base { break }
            step.step.apply(to: &names)
        }
        return names
    }

    /// Returns the names of the elements as the writer saw them.
    func names(for writer: RealmWriter) -> [UInt64] {
        var names = names(at: writer.base)
        var ownClears: [RealmStamp] = []
        let received = sentClears.filter { $0.file == writer.file && $0.version <= writer.base }
        for edit in edits where edit.writer.file == writer.file && edit.writer.version > writer.base {
            if edit.action == .clear { ownClears.append(edit.writer.stamp) }
            // The edit was pending when the Clear arrived. A later Clear of the file's own beats the one that arrived.
            let isGone = received.contains { clear in
                edit.writer.base < clear.version && !ownClears.contains { $0 > clear.stamp }
            }
            if !isGone { edit.apply(to: &names) }
        }
        return names
    }

    // MARK: Edits

    /// Inserts an element.
    /// - Returns: `true` if recipients may apply the instruction.
    mutating func insert(_ value: Value, at index: Int, by writer: RealmWriter) -> Bool {
        let mine = names(for: writer)
        let isKnown = (0...mine.count).contains(index)
        let index = max(0, min(index, mine.count))
        let name = nextName
        nextName += 1
        edits.append(Edit(writer: writer, action: .insert(name, after: index == 0 ? nil : mine[index - 1])))
        // A Clear of another file removes concurrent insertions, later ones too.
        if isCleared(writer) { return isKnown }
        let place = place(mine, index, writer)
        insert(Element(name: name, value: value, stamp: writer.stamp, version: writer.version), at: place, writer)
        return isKnown
    }

    /// Replaces an element's value.
    /// - Returns: `true` if recipients may apply the instruction.
    mutating func set(_ value: Value, at index: Int, by writer: RealmWriter) -> Bool {
        let mine = names(for: writer)
        guard mine.indices.contains(index), let place = position(mine[index]) else { return false }
        let old = elements[place]
        if writer.isConcurrent(old.version, by: old.stamp.file), old.stamp > writer.stamp { return true }
        elements[place].value = value
        elements[place].stamp = writer.stamp
        elements[place].version = writer.version
        return true
    }

    /// Removes an element.
    /// - Returns: `true` if recipients may apply the instruction.
    mutating func remove(at index: Int, by writer: RealmWriter) -> Bool {
        let mine = names(for: writer)
        guard mine.indices.contains(index) else { return false }
        edits.append(Edit(writer: writer, action: .remove(mine[index])))
        guard let place = position(mine[index]) else { return false }
        remove(at: place, writer)
        return true
    }

    /// Moves an element so that it has the index `to` afterwards.
    /// - Returns: `true` if recipients may apply the instruction.
    mutating func move(from: Int, to: Int, by writer: RealmWriter) -> Bool {
        let mine = names(for: writer)
        guard mine.indices.contains(from), mine.indices.contains(to), from != to else { return false }
        let name = mine[from]
        let others = mine.filter { $0 != name }
        edits.append(Edit(writer: writer, action: .move(name, after: to == 0 ? nil : others[to - 1])))
        guard let place = position(name) else { return false }
        let element = elements[place]
        remove(at: place, writer)
        insert(element, at: self.place(others, to, writer), writer)
        return true
    }

    /// Removes all elements, those of concurrent insertions too.
    mutating func clear(by writer: RealmWriter) {
        edits.append(Edit(writer: writer, action: .clear))
        clears.append(Change(version: writer.version, file: writer.file))
        elements = []
        steps.append(LoggedStep(version: writer.version, step: .clear))
    }

    private func isCleared(_ writer: RealmWriter) -> Bool { clears.contains { writer.isConcurrent($0.version, by: $0.file) } }

    private func position(_ name: UInt64) -> Int? { elements.firstIndex { $0.name == name } }

    /// Returns the place in the server's list of an element that the writer put at the index.
    private func place(_ mine: [UInt64], _ index: Int, _ writer: RealmWriter) -> Int {
        let before = mine[..<index].reversed().lazy.compactMap { position($0) }.first
        var place = before.map { $0 + 1 } ?? 0
        // Of concurrent insertions at one place, the later one goes after the earlier one.
        while place < elements.count, isEarlierStranger(elements[place], writer), !mine.contains(elements[place].name) { place += 1 }
        return place
    }

    private func isEarlierStranger(_ element: Element, _ writer: RealmWriter) -> Bool {
        writer.isConcurrent(element.version, by: element.stamp.file) && element.stamp < writer.stamp
    }

    private mutating func insert(_ element: Element, at place: Int, _ writer: RealmWriter) {
        elements.insert(element, at: place)
        steps.append(LoggedStep(version: writer.version, step: .insert(element.name, place)))
    }

    private mutating func remove(at place: Int, _ writer: RealmWriter) {
        elements.remove(at: place)
        steps.append(LoggedStep(version: writer.version, step: .remove(place)))
    }

    // MARK: Memory

    /// Drops the history that every file has seen, and the oldest beyond the bound.
    mutating func prune(seenByAll horizon: UInt64, _ bounds: RealmIntegrationBounds) {
        forget(upTo: horizon)
        forgotten.prune(seenByAll: horizon)
        while cost > bounds.listEdits, let version = oldestVersion { forget(upTo: max(version, floor + 1)) }
    }

    private var oldestVersion: UInt64? {
        [steps.first?.version, changes.first?.version, edits.first?.writer.version, sentClears.first?.version].compactMap(\.self).min()
    }

    private mutating func forget(upTo version: UInt64) {
        guard version > floor else { return }
        floor = version
        oldest = names(at: version)
        steps.removeAll { $0.version <= version }
        for change in changes where change.version <= version { forgotten.add(change.version, by: change.file) }
        changes.removeAll { $0.version <= version }
        clears.removeAll { $0.version <= version }
        edits.removeAll { $0.writer.version <= version }
        let edits = edits
        sentClears.removeAll { clear in
            clear.version <= version && !edits.contains { $0.writer.file == clear.file && $0.writer.base < clear.version }
        }
    }
}

extension RealmListHistory.Edit {
    fileprivate func apply(to names: inout [UInt64]) {
        switch action {
        case .insert(let name, let after): insert(name, after, &names)
        case .remove(let name): names.removeAll { $0 == name }
        case .move(let name, let after):
            guard names.contains(name) else { return }
            names.removeAll { $0 == name }
            insert(name, after, &names)
        case .clear: names = []
        }
    }

    private func insert(_ name: UInt64, _ after: UInt64?, _ names: inout [UInt64]) {
        let before = after.flatMap { names.firstIndex(of: $0) }
        names.insert(name, at: before.map { $0 + 1 } ?? 0)
    }
}
