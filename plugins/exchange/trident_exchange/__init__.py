"""An exchange in a box: OUCH 5.0 over SoupBinTCP in, ITCH 5.0 over MoldUDP64 and SoupBinTCP out."""
