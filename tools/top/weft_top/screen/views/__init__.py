"""The views, in the order of their number keys. Each makes a Page from the ScreenState, and keeps nothing of it."""

from .balance import BalanceView
from .events import EventsView
from .help import HelpView
from .nic import NicView
from .nics import NicsView
from .peers import PeersView
from .processes import ProcessesView

TABS = (NicsView(), BalanceView(), ProcessesView(), PeersView(), EventsView())
NIC_KEY = str(len(TABS) + 1)  # the page of the NIC that was opened last
VIEWS = {view.name: view for view in (*TABS, NicView(), HelpView())}
