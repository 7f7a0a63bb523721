import SluiceCore

@testable import SluiceRealm

/// The work on one changeset: the objects before and after it, and the instructions that recipients apply.
struct RealmUploadWork {
    /// One object of the changeset.
    struct State {
        let before: RealmIntegratedObject?
        var after: RealmIntegratedObject?
        /// The instructions for recipients that hold the object, in order.
        var accepted: [RealmInstruction] = []
        /// The collections that all holders need anew, in order.
        var conflicts: [String] = []
        /// `true` if the changeset creates an object that the server does not have.
        var isCreated = false
        /// `true` if the changeset deletes the object, perhaps before it creates the object again.
        var isErased = false
        var rejection: RealmRejection?
    }

    let writer: RealmWriter
    /// The writer's memory, with the barriers that the changeset passes.
    var file: RealmFileMemory
    /// The objects in the order in which the changeset names them.
    private(set) var order: [ObjectKey] = []
    private(set) var states: [ObjectKey: State] = [:]

    init(writer: RealmWriter, file: RealmFileMemory) {
        self.writer = writer
        self.file = file
    }

    mutating func apply(_ instruction: RealmInstruction, _ key: ObjectKey, _ stored: RealmIntegratedObject?) {
        if states[key]?.rejection != nil { return }
        if file.isBarred(key, writer) {
            // The client's own later erasure beats the one that it receives.
            guard case .eraseObject = instruction, file.pass(key, writer) else { return }
            if (states[key].map(\.after) ?? stored) != nil { file.view.insert(key) }
        }
        var state = states.removeValue(forKey: key) ?? begin(key, stored)
        if state.before != nil, !file.view.contains(key) { state.rejection = .outsideOfView } else { state.apply(instruction, key, writer) }
        states[key] = state
    }

    private mutating func begin(_ key: ObjectKey, _ stored: RealmIntegratedObject?) -> State {
        order.append(key)
        return State(before: stored, after: stored)
    }

    /// Rejects the objects that the writer may not change, or that it may not see after their creation.
    mutating func check(_ rules: some RealmViewRules) {
        for key in order {
            guard let state = states[key], state.rejection == nil else { continue }
            let values = state.after?.values
            // Nothing changed: all its instructions lost.
            if state.before == nil, values == nil, !state.isErased { continue }
            if !rules.permits(key, from: state.before?.values, to: values, by: writer.file) {
                states[key]?.rejection = .notPermitted
            } else if state.isCreated, let values, !rules.isInView(key, values, of: writer.file) {
                states[key]?.rejection = .outsideOfView
            }
        }
    }
}

extension RealmUploadWork.State {
    mutating func apply(_ instruction: RealmInstruction, _ key: ObjectKey, _ writer: RealmWriter) {
        switch instruction {
        case .createObject:
            if after == nil { after = RealmIntegratedObject() }
            isCreated = isCreated || before == nil
            accepted.append(instruction)
        case .eraseObject:
            // A new life has no history: everything pending against the old one is void.
            after = nil
            (isErased, conflicts) = (true, [])
            accepted.append(instruction)
        default: change(instruction, writer)
        }
    }

    private mutating func change(_ instruction: RealmInstruction, _ writer: RealmWriter) {
        // The object is gone: the change is void.
        guard var object = after else { return }
        after = nil
        defer { after = object }
        switch object.apply(instruction, by: writer) {
        case .accepted(let instruction): accepted.append(instruction)
        case .dropped: break
        case .conflict(let field): if !conflicts.contains(field) { conflicts.append(field) }
        case .unsupported: rejection = .unsupportedPlace
        }
    }
}
