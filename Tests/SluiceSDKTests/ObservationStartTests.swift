import Dispatch
import Testing

@testable import SluiceSDK

/// The start of observations on a queue of their own.
@Suite struct ObservationStartTests {
    @Test func `an object that is deleted before its observation begins ends it`() throws {
        let folder = try TemporaryFolder()
        let realm = try Realm(configuration: folder.configuration([Task.self]))
        let task = try realm.write { realm.create(Task.self) }
        let (queue, gone, told) = (DispatchQueue(label: "observer"), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        // The observation can begin when the object is gone.
        queue.async { gone.wait() }
        let token = task.observe(on: queue) { (change: ObjectChange<Task>) in
            if case .deleted = change { told.signal() }
        }
        try realm.write { realm.delete(task) }
        gone.signal()
        #expect(told.wait(timeout: .now() + 60) == .success)
        #expect(!token.isValid)
    }
}
